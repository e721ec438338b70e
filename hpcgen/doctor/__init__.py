"""Drift: a profile held against the machine that it speaks of.

:func:`examine` is pure: what was seen, and what is there, comes in as data. The parts: ``look`` sees a machine with the
profile's own MPI, ``present`` looks for the paths and modules that the profile names, ``node`` finds out which
partition a node belongs to, ``values`` compares two values by what they mean, ``rules`` says which facts are compared
how and how grave a difference is, ``dependents`` what rests on a fact.
"""

from hpcgen.doctor.examine import examine
from hpcgen.doctor.report import Drift, Report, Unseen

__all__ = ["Drift", "Report", "Unseen", "examine"]
