"""Licences of Intel's packages, which a build accepts."""

from __future__ import annotations

from hpcgen.blocks.capabilities import Licence

SIMPLIFIED = Licence(
    "intel-simplified",
    "Intel Simplified Software License",
    "https://software.intel.com/en-us/license/intel-simplified-software-license",
)
EULA = Licence(
    "intel-eula",
    "Intel End User License Agreement",
    "https://www.intel.com/content/www/us/en/developer/articles/license/end-user-license-agreement.html",
)
