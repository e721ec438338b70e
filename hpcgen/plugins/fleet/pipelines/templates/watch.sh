# What a pipeline runs every week, and how its report becomes an issue. The report stays where there is something to do.
# Sources: google.github.io/osv.dev, "Data dumps"; gh-issue-list(1), gh-issue-edit(1), gh-issue-create(1); GitLab's REST
# API, "Issues API": list project issues, new issue, edit an issue.
#: watch
# Resolves Python packages, for what is left out of the tables because of them.
retried python3 -m pip install -q @{resolver}
mkdir -p @{work}/osv
for name in @{ecosystems}; do
  retried curl -fsS --proto =https -o @{work}/osv.zip "https://osv-vulnerabilities.storage.googleapis.com/$name/all.zip"
  python3 -m zipfile -e @{work}/osv.zip "@{work}/osv/$name"
done
advisories=0
hpcgen affected --fleet "$HPCGEN_FLEET" @{advisories} \
  > @{work}/affected.txt 2> @{work}/affected.said || advisories=$?
tables=0
hpcgen tables refresh > @{work}/tables.txt 2> @{work}/tables.said || tables=$?
{
  echo 'What advisories name, by hpcgen affected:'
  echo '~~~'
  head -c 25000 @{work}/affected.txt
  tail -n 20 @{work}/affected.said
  echo '~~~'
  echo 'What is newer than the release tables, by hpcgen tables refresh:'
  echo '~~~'
  head -c 25000 @{work}/tables.txt
  tail -n 20 @{work}/tables.said
  echo '~~~'
} > @{work}/watch.md
cat @{work}/watch.md
case $advisories in 0 | 1 | 13) ;; *) exit "$advisories" ;; esac
case $tables in 0 | 13 | 14) ;; *) exit "$tables" ;; esac
# Nothing is affected, and nothing is newer, as far as is known (13).
if [ "$advisories" != 1 ] && [ "$tables" != 14 ]; then rm @{work}/watch.md; fi
#: github
if [ ! -f @{work}/watch.md ]; then exit 0; fi
number=$(gh issue list --state open --search "in:title \"$HPCGEN_TITLE\"" --json number --jq '.[0].number // empty')
if [ -n "$number" ]; then
  gh issue edit "$number" --body-file @{work}/watch.md
else
  gh issue create --title "$HPCGEN_TITLE" --body-file @{work}/watch.md
fi
#: gitlab
if [ ! -f @{work}/watch.md ]; then exit 0; fi
if [ -z "${HPCGEN_ISSUE_TOKEN:-}" ]; then
  echo 'There is something to do, and no HPCGEN_ISSUE_TOKEN to open an issue with.' >&2
  exit 1
fi
issues="$CI_API_V4_URL/projects/$CI_PROJECT_ID/issues"
# By its standard input curl gets what others on the machine must not see.
asked() { printf 'header = "PRIVATE-TOKEN: %s"\n' "$HPCGEN_ISSUE_TOKEN" | curl -fsS --retry 3 -K - "$@"; }
asked -G --data-urlencode "search=$HPCGEN_TITLE" -d 'in=title&state=opened' "$issues" > @{work}/issues.json
first='import json, sys; print(next((each["iid"] for each in json.load(sys.stdin)), ""))'
number=$(python3 -c "$first" < @{work}/issues.json)
if [ -n "$number" ]; then
  asked -X PUT --data-urlencode "description@@{work}/watch.md" "$issues/$number" > @{work}/issue.json
else
  asked --data-urlencode "title=$HPCGEN_TITLE" --data-urlencode "description@@{work}/watch.md" "$issues" > @{work}/issue.json
fi
