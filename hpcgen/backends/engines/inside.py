"""No engine at all: the batch system has started the image, and the job script runs inside of it."""

from __future__ import annotations

from hpcgen.backends.engines.apptainer import Apptainer
from hpcgen.backends.engines.base import Call, environment_words


class InsideImage(Apptainer):
    """What a script in the image needs: variables alone. No profile can name it."""

    program = "/usr/bin/env"

    def start_words(self, call: Call) -> list[list[str]]:
        """The site's options are those of an engine that somebody else has started."""
        return environment_words(call, call.unset) or [["/usr/bin/env"]]

    def missing_image(self, named: bool) -> tuple[str, str]:
        """It is there, or no script would run."""
        return "", ""
