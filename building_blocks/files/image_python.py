"""Two Pythons of one image that see each other's packages: the image's own, and an environment of it.

python3 image_python.py seen PREFIX: an environment is made that sees the image's packages, and leaves their versions.
PREFIX/bin/python image_python.py shown PREFIX: the image's Python sees the packages of the environment, after its own.
"""

import re
import subprocess
import sys
from pathlib import Path

VERSION = r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?(\+[A-Za-z0-9.]+)?"
NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
TOOLS = ("pip", "setuptools", "wheel")


def shows(folders):
    """Lines of a .pth file; site also reads the .pth files of these folders."""
    return "".join(f"import site; site.addsitedir({str(each)!r})\n" for each in folders)


def versions(folders):
    """What is there, as pip names it; what it could not read is left out."""
    try:
        from importlib.metadata import distributions
    except ImportError:
        return []
    found = {}
    for each in distributions(path=folders):
        name, version = str(each.metadata["Name"]), str(each.version)
        if re.fullmatch(NAME, name) and re.fullmatch(VERSION, version) and name.lower() not in TOOLS:
            found.setdefault(name.lower(), f"{name}=={version}")
    return sorted(found.values())


found = [each for each in sys.path if each.endswith("-packages") and Path(each).is_dir()]
what, prefix = sys.argv[1], Path(sys.argv[2])
inside = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
if what == "seen":
    subprocess.check_call([sys.executable, "-m", "venv", "--without-pip", str(prefix)])
    held = prefix / "image-packages.txt"
    (inside / "image.pth").write_text(shows(each for each in found if each != str(inside)))
    held.write_text("".join(f"{each}\n" for each in versions(found)))
    (prefix / "pip.conf").write_text(f"[global]\nconstraint = {held}\n")
    python = [str(prefix / "bin" / "python"), "-m"]
    if subprocess.call([*python, "pip", "--version"]) != 0:
        subprocess.check_call([*python, "ensurepip"])
else:
    own = next(each for each in found if each != str(inside))
    # Its path alone: were .pth files read there too, the two would call each other without end.
    (Path(own) / "hpcgen.pth").write_text(f"{inside}\n")
