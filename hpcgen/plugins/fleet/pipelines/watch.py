"""What a pipeline does every week: holds the images against new advisories, and the release tables against releases.

What there is to be done is one issue, which is written over as long as it is open.
"""

from __future__ import annotations

from hpcgen.core.support.extras import requirements_of
from hpcgen.core.support.quoting import command
from hpcgen.plugins.fleet.pipelines.options import WORK, PipelineOptions

TITLE = "Images of the fleet that have to be built again"
REPORT = f"{WORK}/watch.md"
ADVISORIES = ("Debian", "Ubuntu", "PyPI")
"""Ecosystems whose advisories ``hpcgen affected`` can judge, as OSV calls them."""
WATCH = f"""\
# Resolves Python packages, for what is left out of the tables because of them.
retried python3 -m pip install -q {command(*(requirements_of("lock") or ["uv"]))}
mkdir -p {WORK}/osv
for name in {" ".join(ADVISORIES)}; do
  retried curl -fsS --proto =https -o {WORK}/osv.zip "https://osv-vulnerabilities.storage.googleapis.com/$name/all.zip"
  python3 -m zipfile -e {WORK}/osv.zip "{WORK}/osv/$name"
done
advisories=0
hpcgen affected --fleet "$HPCGEN_FLEET" {" ".join(f"--advisory {WORK}/osv/{name}" for name in ADVISORIES)} \\
  > {WORK}/affected.txt 2> {WORK}/affected.said || advisories=$?
tables=0
hpcgen tables refresh > {WORK}/tables.txt 2> {WORK}/tables.said || tables=$?
{{
  echo 'What advisories name, by hpcgen affected:'
  echo '~~~'
  head -c 25000 {WORK}/affected.txt
  tail -n 20 {WORK}/affected.said
  echo '~~~'
  echo 'What is newer than the release tables, by hpcgen tables refresh:'
  echo '~~~'
  head -c 25000 {WORK}/tables.txt
  tail -n 20 {WORK}/tables.said
  echo '~~~'
}} > {REPORT}
cat {REPORT}
case $advisories in 0 | 1 | 13) ;; *) exit "$advisories" ;; esac
case $tables in 0 | 13 | 14) ;; *) exit "$tables" ;; esac
# Nothing is affected, and nothing is newer, as far as is known (13).
if [ "$advisories" != 1 ] && [ "$tables" != 14 ]; then rm {REPORT}; fi
"""
"""Leaves the report where there is something to do. Source of the addresses: google.github.io/osv.dev, "Data dumps"."""
_NOTHING = f"if [ ! -f {REPORT} ]; then exit 0; fi\n"
GITHUB = f"""\
{_NOTHING}\
number=$(gh issue list --state open --search "in:title \\"$HPCGEN_TITLE\\"" --json number --jq '.[0].number // empty')
if [ -n "$number" ]; then
  gh issue edit "$number" --body-file {REPORT}
else
  gh issue create --title "$HPCGEN_TITLE" --body-file {REPORT}
fi
"""
"""Source: gh-issue-list(1), gh-issue-edit(1), gh-issue-create(1)."""
GITLAB = f"""\
{_NOTHING}\
if [ -z "${{HPCGEN_ISSUE_TOKEN:-}}" ]; then
  echo 'There is something to do, and no HPCGEN_ISSUE_TOKEN to open an issue with.' >&2
  exit 1
fi
issues="$CI_API_V4_URL/projects/$CI_PROJECT_ID/issues"
# By its standard input curl gets what others on the machine must not see.
asked() {{ printf 'header = "PRIVATE-TOKEN: %s"\\n' "$HPCGEN_ISSUE_TOKEN" | curl -fsS --retry 3 -K - "$@"; }}
asked -G --data-urlencode "search=$HPCGEN_TITLE" -d 'in=title&state=opened' "$issues" > {WORK}/issues.json
first='import json, sys; print(next((each["iid"] for each in json.load(sys.stdin)), ""))'
number=$(python3 -c "$first" < {WORK}/issues.json)
if [ -n "$number" ]; then
  asked -X PUT --data-urlencode "description@{REPORT}" "$issues/$number" > {WORK}/issue.json
else
  asked --data-urlencode "title=$HPCGEN_TITLE" --data-urlencode "description@{REPORT}" "$issues" > {WORK}/issue.json
fi
"""
"""Source: GitLab's REST API, "Issues API": list project issues, new issue, edit an issue."""


def watched(options: PipelineOptions) -> dict[str, str]:
    """Variables of these scripts: the issue's title, and the fleet's own tables."""
    return {"HPCGEN_TITLE": TITLE, **({"HPCGEN_COLLECTIONS": options.collections} if options.collections else {})}
