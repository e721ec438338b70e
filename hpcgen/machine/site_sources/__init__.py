"""What administrators have already: files that describe a system for other programs → facts of a site profile.

One module per kind of file. Each gives the same records as detection (:class:`hpcgen.machine.detect.seen.Seen`), with
the file and line as their origin, so that a profile is written, and compared, in one way. Files are read as data.
"""
