"""Import what a package brings: imports.py NAME [CONDA-META]; in the Python of its environment.

The names are those of its files in site-packages; with a folder of conda-meta, of the conda package NAME.
"""

import importlib
import json
import sys
from importlib import metadata
from pathlib import Path

DRIVER = ("libcuda.so", "libnvidia-ml.so", "libamdhip64.so", "libhsa-runtime64.so")
"""Libraries of a GPU's driver, which is on nodes and not where images are built."""
NO_MODULES = ("test", "tests", "doc", "docs", "example", "examples")


def files_of(name, meta):
    """Paths from site-packages; None where nobody lists them."""
    if not meta:
        found = metadata.distribution(name).files
        return None if found is None else [str(each).replace("\\", "/") for each in found]
    for path in Path(meta).glob(f"{name}-*.json"):
        said = json.loads(path.read_text("utf-8"))
        if said["name"] == name:
            return [each.partition("site-packages/")[2] for each in said["files"] if "site-packages/" in each]
    raise metadata.PackageNotFoundError(name)


def modules(files):
    """Modules at the top, and of a folder that is none itself those below it: google.protobuf."""
    packages = {each.rpartition("/")[0] for each in files if each.endswith("/__init__.py")}
    found = set()
    for path in files:
        folder, _, file = path.rpartition("/")
        above = folder.split("/") if folder else []
        if file == "__init__.py" and not any("/".join(above[:n]) in packages for n in range(1, len(above))):
            found.add(tuple(above))
        elif not above and file.endswith((".py", ".so")):
            found.add((file.partition(".")[0],))
    fit = {each for each in found if len(each) < 3 and each[0] not in NO_MODULES and all(map(str.isidentifier, each))}
    public = {each for each in fit if not each[0].startswith("_")}
    return sorted(".".join(each) for each in public or fit)


def main(name, meta=""):
    try:
        files = files_of(name, meta)
    except metadata.PackageNotFoundError:
        sys.exit(f"{name} is not there")
    names = modules(files or [])
    for module in names:
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as failure:
            if not any(each in str(failure) for each in DRIVER):
                raise
            print(f"{module} needs a GPU's driver: {failure}")
    print(f"imported: {', '.join(names) or 'it has no modules'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
