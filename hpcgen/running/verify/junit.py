"""Results as JUnit XML, as GitLab, GitHub's actions and Jenkins read it.

The form is that of the schema junit-10.xsd of jenkinsci/xunit-plugin.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hpcgen.core.model.record import TestResult, TestRun

# What XML 1.0 can hold, not even escaped otherwise (section 2.2 of its specification).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def junit_xml(run: TestRun, image: str) -> str:
    """One test suite per block and one for the contract. ``image``: the image's name, for people."""
    suites = ElementTree.Element(
        "testsuites",
        name=_text(f"{image} on {run.site} by {run.engine}"),
        tests=str(len(run.results)),
        failures=str(run.count("failed")),
        errors="0",
        time=f"{run.seconds:.3f}",
    )
    for group in dict.fromkeys(each.group for each in run.results):
        results = [each for each in run.results if each.group == group]
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=_text(group),
            tests=str(len(results)),
            failures=str(sum(each.result == "failed" for each in results)),
            errors="0",
            skipped=str(sum(each.result == "skipped" for each in results)),
            time=f"{sum(each.seconds for each in results):.3f}",
            # In UTC; the schemas that have a pattern for it want no zone.
            timestamp=_text(run.started.removesuffix("Z")),
        )
        for each in results:
            suite.append(_case(each, run))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(result: TestResult, run: TestRun) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=_text(f"{run.site}.{result.group}"),
        name=_text(result.name),
        time=f"{result.seconds:.3f}",
    )
    reason = _text(result.reason)
    if result.result == "failed":
        failure = ElementTree.SubElement(case, "failure", message=reason, type="failed")
        failure.text = _text("\n".join(part for part in (result.reason, result.remedy, result.output) if part))
    elif result.result == "skipped":
        ElementTree.SubElement(case, "skipped", message=reason)
    if result.output:
        ElementTree.SubElement(case, "system-out").text = _text(result.output)
    return case


def _text(text: str) -> str:
    """Without what XML cannot hold; colours of a terminal go as a whole."""
    return _FORBIDDEN.sub("", _COLOUR.sub("", text))
