# The preflight of a job script in parts, put together by preflight.py; @{name} stands for a value, quoted already.
#: finding
preflight_finding() { # FAILED or warning, what, expected, seen, what to do
    printf 'preflight\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(uname -n)" "$@"
}
#: there
preflight_there() { # FAILED or warning, what, what to do, paths
    local path
    for path in "${@:4}"; do
        [ -e "$path" ] || preflight_finding "$1" "$2" "$path" 'nothing there' "$3"
    done
}
#: older
preflight_older() { # version, than another, as far as both go
    awk -v here="$1" -v than="$2" 'BEGIN {
        n = split(here, a, "."); m = split(than, b, ".")
        for (i = 1; i <= n && i <= m; i++)
            if (a[i] + 0 != b[i] + 0)
                exit !(a[i] + 0 < b[i] + 0)
        exit 1
    }'
}
#: sum
preflight_sum() { # what, file or folder, FAILED or warning, what to do: told, so that nodes can be compared
    local sum
    # A copy has what the original has; the whole of it would take long to read. A folder is told by what was installed.
    if [ -d "$2" ]; then
        sum=$(cat "$2"/opt/hpcgen/kit/plan.json "$2"/etc/os-release "$2"/etc/ld.so.cache 2> /dev/null | cksum)
    else
        sum=$({ wc -c < "$2"; head -c 65536 "$2"; tail -c 65536 "$2"; } 2> /dev/null | cksum)
    fi
    printf 'preflight-sum\t%s\t%s\t%s\t%s\t%s\n' "$(uname -n)" "$1" "${sum// /-}" "$3" "$4"
}
#: node
preflight_node() { # image, the node that the launcher is started on
    local word seen missing=''@{folders}
#: first
    # The first rank of a node looks for all of them.
    if [ "${@{local_rank}:-0}" != 0 ]; then
        return 0
    fi
#: paths
    preflight_there @{weight} @{what} @{todo} \
        @{paths}
#: opened
    if [ -e @{device} ] && [ ! -w @{device} ]; then
        preflight_finding FAILED GPU @{device}', to be opened' 'no right to write to it' @{todo}
    fi
#: cpu
    seen=$(awk -F: '/^(flags|Features)/ { print $2; exit }' /proc/cpuinfo)
    for word in @{features}; do
        case " $seen " in
            *" $word "*) ;;
            *) missing="$missing $word" ;;
        esac
    done
    if [ -n "$seen" ] && [ -n "$missing" ]; then
        preflight_finding FAILED CPU @{cpu} "a CPU without$missing" @{todo}
    fi
#: driver
    if [ -r @{file} ]; then
        seen=$(grep -o -E 'Kernel Module .*' @{file} | grep -o -E '[0-9]+(\.[0-9]+)+' | head -n 1)
        if [ -n "$seen" ] && preflight_older "$seen" @{driver}; then
            preflight_finding FAILED 'GPU driver' @{expected} "$seen" @{todo}
        fi
    fi
#: library
    missing=''
    folders=(
        @{folders}
    )
    for word in "${folders[@]}"; do
        if [ -r "$word"/@{library} ]; then
            missing=''
            @{sum}
            break
        fi
        missing="$missing $word"
    done
    if [ -n "$missing" ]; then
        preflight_finding FAILED 'host MPI' @{library} "none in$missing" @{todo}
    fi
#: image
    [ ! -r "$1" ] || preflight_sum image "$1" FAILED @{todo}
#: starts
    if ! seen=$(@{engine} --version 2>&1); then
        seen=$(head -n 1 <<< "$seen" | sed 's/^.*: line [0-9]*: //' | tr '\t' ' ')
        preflight_finding FAILED engine @{engine}' that can be started' "${seen:-it fails}" @{todo}
    fi
#: names
    # By that name it is called back from this node.
    if [ -z "${I_MPI_HYDRA_IFACE:-${HYDRA_IFACE:-}}" ] && type getent > /dev/null 2>&1 && [ -n "${2:-}" ]; then
        timeout 10 getent hosts "$2" > /dev/null ||
            preflight_finding FAILED 'host name' "an address of $2" 'none' @{todo}
    fi
#: variables
    for word in @{names}; do
        seen=${!word:-}
        case $seen in
            '' | ^*) continue ;;
        esac
        missing=$seen
        for seen in ${seen//[;,]/ }; do
            [[ @{same} != *" $seen "* ]] || missing=''
        done
        [ -z "$missing" ] || preflight_finding @{weight} "$word" @{expected} "$missing, from the environment" @{todo}
    done
    missing=''
#: shared_memory
    seen=$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 { print $4 }')
    if [ -n "$seen" ] && [ "$seen" -lt @{least} ]; then
        preflight_finding @{weight} /dev/shm @{expected} "$seen kB free" @{todo}
    fi
#: locked_memory
    seen=$(ulimit -l)
    if [ "$seen" != unlimited ] && [ "$seen" -lt @{least} ]; then
        preflight_finding warning 'locked memory (ulimit -l)' @{expected} "$seen kB" @{todo}
    fi
#: engine
    word=@{oldest}
    case $1 in
        @{releases}
    esac
    if [ -n "$word" ]; then
        seen=$(@{engine} --version 2>&1 | grep -o -E '[0-9]+(\.[0-9]+)+' | tail -n 1)
        if [ -n "$seen" ] && preflight_older "$seen" "$word"; then
            preflight_finding FAILED engine @{engine}" $word or newer" "$seen" @{todo}
        fi
    fi
#: memory
    seen=$(awk '/^MemAvailable:/ { printf "%d", $2 * 1024 / 1e9 }' /proc/meminfo)
    if [ -n "$seen" ] && [ "$seen" -lt @{memory} ]; then
        preflight_finding FAILED memory @{expected} "$seen GB free" @{todo}
    fi
    # The job may have less than the node: the least of its control group and of those above it.
    seen=$(while IFS=: read -r _ word path; do
        case ,$word, in
            ,,) word=/sys/fs/cgroup/@/memory.max ;;
            *,memory,*) word=/sys/fs/cgroup/memory/@/memory.limit_in_bytes ;;
            *) continue ;;
        esac
        while cat "${word/@/$path}" 2> /dev/null || true; [ -n "${path%/}" ]; do
            path=${path%/*}
        done
    done < /proc/self/cgroup | awk '/^[0-9]+$/ && (least == "" || $1 < least) { least = $1 }
        END { if (least != "") printf "%.0f", int(least / 1e9) }')
    if [ -n "$seen" ] && [ "$seen" -lt @{memory} ]; then
        preflight_finding FAILED memory @{expected} "$seen GB for the job (cgroup)" @{limited}
    fi
#: end
    printf 'preflight-node\t%s\n' "$(uname -n)"
}
#: report
preflight_report() { # findings as people read them; @{status} if one of them stops the job
    awk -F '\t' -v nodes=@{nodes} -v own="$(uname -n)" '
        function add(node, key) {
            if (!known[key]++)
                order[++n] = key
            if (node != "" && !told[key, node]++ && ++count[key] <= 3)
                where[key] = where[key] (count[key] > 1 ? ", " : " on ") node
        }
        /^@{label}preflight[-a-z]*\t/ { sub(/^@{label}/, "") }
        $1 == "preflight" && NF == 7 { add($2, $3 FS $4 FS $5 FS $6 FS $7); next }
        $1 == "preflight-sum" {
            if (!summed[$2, $3]++) {
                sums[++summaries] = $0
                alike[$3, $4]++
            }
            next
        }
        $1 == "preflight-node" { heard += !here[$2]++; sub(/\..*/, "", $2); short[$2]; asked = 1; next }
        $1 == "preflight-expected" { sub(/\..*/, "", $2); expected[wanted++] = $2; next }
        $1 == "preflight-asked" { asked = 1; next }
        $1 == "preflight-passed" { passed = $2; next }
        $0 != "" { line[lines++ % 20] = $0 }
        END {
            # What most nodes have is right, and where there is no such thing, what this node has.
            for (i = 1; i <= summaries; i++) {
                split(sums[i], part, FS)
                size = alike[part[3], part[4]] + (part[2] == own ? 0.5 : 0)
                if (size > most[part[3]]) {
                    most[part[3]] = size
                    usual[part[3]] = part[4]
                    whose[part[3]] = part[2]
                }
            }
            for (i = 1; i <= summaries; i++) {
                split(sums[i], part, FS)
                if (part[4] != usual[part[3]])
                    add(part[2], part[5] FS part[3] FS "the same as on " whose[part[3]] FS "another one" FS part[6])
            }
            for (i = 1; i <= n; i++) {
                split(order[i], part, FS)
                more = count[order[i]] > 3 ? " and " count[order[i]] - 3 " more" : ""
                text = "preflight: " part[1] ": " part[2] where[order[i]] more
                print text ": expected " part[3] "; seen: " part[4] "; " part[5]
                if (part[1] == "FAILED")
                    failed = 1
            }
            if (asked && heard < nodes) {
                for (i = 0; i < wanted; i++)
                    if (!(expected[i] in short) && ++silent <= 3)
                        names = names (silent > 1 ? ", " : "") expected[i]
                # Names of the batch system that the nodes do not have themselves say nothing.
                if (silent == 0 || silent != nodes - heard)
                    names = "the others"
                else if (silent > 3)
                    names = names " and " silent - 3 " more"
                print "preflight: FAILED: nodes: expected " nodes "; seen: " heard + 0 "; no answer from " names
                failed = 1
            }
            for (i = lines > 20 ? lines - 20 : 0; failed && i < lines; i++)
                print "  | " line[i % 20]
            if (!failed && passed != "")
                print "preflight: passed: " passed
            exit failed ? @{status} : 0
        }' >&2
}
#: ranks
preflight_ranks() {
    local status=0
    {
        timeout --foreground -k 10 @{limit_s} "${launch[@]}" \
            @{command} < /dev/null || status=$?
        printf '\npreflight-status %s\n' "$status"
    } 2>&1 | MPI_FILE=@{mpi_file} awk \
        -v wanted=@{wanted} -v limit=@{limit_s} -v said=@{provider_is} \
        -v whose=@{whose} -v folders=@{folders} \
        -v fabric=@{fabric} -v provider=@{provider} -v same=@{same} -v slow=@{slow} \
        -v weight=@{provider_weight} '
        function finding(mark, what, expected, seen, todo, node) {
            printf "preflight\t%s\t%s\t%s\t%s\t%s\t%s\n", node, mark, what, expected, seen, todo
            found = 1
        }
        function right(path, i) {
            for (i = 1; i <= places; i++)
                if (index(path, place[i] "/") == 1)
                    return 1
            return places == 0
        }
        BEGIN { places = split(folders, place, " ") }
        # Behind a label of the launcher, or the half of a line of another rank, which was written in pieces.
        match($0, /rank [0-9]+ (of [0-9]+ on |maps \/|has library )/) { $0 = substr($0, RSTART) }
        /^@{label}library / { sub(/^@{label}/, "") }
        /^rank [0-9]+ of [0-9]+ on / {
            ranks++
            host[$2] = $6
            if ($4 != wanted)
                size = $4
            next
        }
        /^rank [0-9]+ maps \// {
            path = substr($0, index($0, "/"))
            if (path ~ ENVIRON["MPI_FILE"] && !known[$2, path]++) {
                mapped[$2] = mapped[$2] " " path
                if (!right(path) && !wrong[path]++)
                    bad = bad " " path
            }
            next
        }
        index($0, said) {
            if (used == "") {
                used = substr($0, index($0, said) + length(said))
                sub(/[^A-Za-z0-9_;].*/, "", used)
            }
            next
        }
@{open_mpi}
@{bound}
        /^preflight-status [0-9]+$/ { status = $2; next }
        /^rank [0-9]+ has library / { other[$2] = $0; sub(/^rank [0-9]+ has library /, "", other[$2]); next }
        /^library / { first = substr($0, 9); next }
        /^\[[0-9]+\] MPI startup\(\)|^MPIDI_OFI_|^MAXIMUM |^==|^$/ { next }
        { line[lines++ % 20] = $0 }
        END {
            how = status == 124 || status == 137 ? "it took longer than " limit " s" : "status " status
            job = "one job of " wanted " ranks"
            lines_below = "read the lines below; hpcgen test IMAGE shows more"
            if (ranks == 0)
                finding("FAILED", "ranks", job, "none, " how, lines_below)
            else if (size != "")
                finding("FAILED", "ranks", job, ranks " ranks in jobs of " size,
                    "the PMI of the launcher does not match the MPI in use: srun --mpi=list shows the choices, mpi.pmi of the profile sets one")
            else if (status != 0)
                finding("FAILED", "ranks", job " that ends well", how, lines_below)
            if (found) {
                for (i = lines > 20 ? lines - 20 : 0; i < lines; i++)
                    print line[i % 20]
                exit
            }
            for (rank in mapped)
                if (!sets[mapped[rank]]++)
                    all = all (kinds++ ? " and" : "") mapped[rank]
            todo = "compare mpi.libraries and mpi.binds of the profile with this machine"
@{loose}
            if (kinds == 0)
                finding("FAILED", "MPI library", whose " from " folders, "none in any rank", todo)
            else if (bad != "")
                finding("FAILED", "MPI library", whose " from " folders, substr(bad, 2), todo)
            else if (kinds > 1)
                finding("FAILED", "MPI library", "the same in every rank", substr(all, 2), todo)
            for (rank in other)
                finding("FAILED", "MPI library", first ", as rank 0 has", other[rank],
                    "ask for the same release on all nodes, or use other nodes", host[rank])
            split(used, layer, ";")
            tcp = used != "" && index(" " slow " ", " " layer[1] " ")
            if (tcp || used != "" && same != "" && !index(" " same " ", " " layer[1] " "))
                finding(tcp ? "FAILED" : weight, "fabric provider", (provider != "" ? provider : "another than TCP") " for " fabric, used,
                    "check that the image or the host MPI has the provider library, and that this node has its device")
            print "preflight-passed\t" ranks " rank" (ranks > 1 ? "s" : "") " with" all (used != "" ? " over " used : "")
        }' | preflight_report
}
#: alone
alone=(
    @{words}
)
preflight_alone() {
    timeout --foreground -k 10 @{limit_s} @{own} bash -c '
        said=$("${@:2}" 2>&1) && exit
        status=$?
        said=$(tr "\t" " " <<< "$said" | grep -v "^ *$" | tail -n 1)
        printf "preflight\t%s\tFAILED\ta rank by itself\tstatus 0\t%s\t%s\n" \
            "$(uname -n)" "status $status${said:+, $said}" "$1"' alone @{todo} "${alone[@]}" @{command} < /dev/null || true
}
#: open_mpi
        /@{component}/ { component = $(NF - 1); next }
        /@{below}/ { below = $0; sub(/.*@{below}/, "", below); sub(/[^A-Za-z0-9_;].*/, "", below); next }
        /@{chatter}/ { next }
        END { used = component == "cm" ? below : @{known} }
#: bound
        /^own_gpu: rank / {
            if (loose == "")
                loose = substr($0, 10)
            next
        }
#: loose
            if (loose != "")
                finding("warning", "binding", "each rank on the CPUs next to its GPU", loose,
                    "request whole nodes, or correct gpu.cpus of the profile")
#: preflight
preflight() {
#: allocation
    if [ -z "${@{variable}:-}" ]; then
        echo "preflight: skipped: @{launcher} would queue for nodes, since there is no allocation here" >&2
        return 0
    fi
#: one
    {
        preflight_node "$image"
#: nodes
preflight_nodes() { # a launcher with its options
    timeout --foreground -k 10 @{limit_s} "$@" \
        bash -c "$(declare -f @{functions}); preflight_node \"\$@\"" preflight "$image" "$(uname -n)" < /dev/null || true
}
#: expected

        { @{nodes} || true; } 2> /dev/null | sed 's/^/preflight-expected\t/'
#: asked
    {
        echo preflight-asked@{expected}
#: all
        preflight_nodes @{outer}
#: twice
        # In an allocation the batch system's own launcher tells at once what keeps that of the ranks waiting.
        answers=''
        [ -z "${@{variable}:-}" ] || answers=$(preflight_nodes @{own} 2>&1)
        printf '%s\n' "$answers"
        reached=$(grep -o 'preflight-node.*' <<< "$answers" | sort -u | wc -l) || true
        if [ -z "$answers" ] ||
            { [ "$reached" -ge @{nodes} ] && ! grep -q $'^preflight\t[^\t]*\tFAILED' <<< "$answers"; }; then
            answers=$(preflight_nodes @{outer} 2>&1)
            printf '%s\n' "$answers"
            reached=$(grep -o 'preflight-node.*' <<< "$answers" | sort -u | wc -l) || true
            if [ "$reached" -lt @{nodes} ]; then
                printf 'preflight\t\t%s\t%s\t%s\t%s\t%s\n' FAILED launcher @{launcher} "it reaches $reached" @{todo}
            fi
        fi
#: signed
        # The image that was signed, when the job starts too; read once, not on each node.
        seen=$(sha256sum < "$image" | cut -d ' ' -f 1) || true
        [ "$seen" = @{signed_as} ] ||
            preflight_finding FAILED image @{expected} "${seen:-it cannot be read}" @{todo}
#: home
        caches=(@{caches})
        for word in "${caches[@]}"; do
            name=${word%%=*}
            seen=${HPCGEN_CACHE:-${XDG_CACHE_HOME:-$PWD/.cache}}/${word##*/}
            @{at_home}
            [ -n "${word#*=}" ] || seen=''
            seen=${!name:-$seen}
            if [[ $seen == "$HOME"/* ]]; then
                preflight_finding warning "$name" @{expected} "$seen" @{todo}
                break
            fi
        done
#: at_home
[ -d "$seen" ] || [ ! -d "$HOME/${word#*=}" ] || seen=$HOME/${word#*=}
#: passed
        printf 'preflight-passed\t%s\n' @{passed}
#: reported
    } 2>&1 | preflight_report || return @{status}
#: collectives
    echo @{text} >&2
#: started
    preflight_ranks
#: started_or_alone
    preflight_ranks || {
        # On which node does not even one rank start by itself?
        [ -z "${@{variable}:-}" ] || preflight_alone 2>&1 | preflight_report
        return @{status}
    }
#: done
}
#: call
if ! preflight; then
    if [ "${HPCGEN_PREFLIGHT:-1}" != warn ]; then
        [ -z "${2:-}" ] || echo "$2: the command was not started; HPCGEN_PREFLIGHT=0 skips the preflight" >&2
        exit @{status}
    fi
    echo "${2:-preflight.sh}: continuing anyway: HPCGEN_PREFLIGHT=warn" >&2
fi
