# shellcheck shell=bash
# Shared by the scripts that start Slurm and its daemons. Source it after common.sh, with $folder set.

# slurm_conf SOCKET: what every slurm.conf here has; $selected and $task where jobs hold memory too
slurm_conf() {
  cat <<END
ClusterName=testbed
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$1
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/${task:-none}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=${selected:-CR_Core}
MpiDefault=none
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
PlugStackConfig=$folder/plugstack.conf
ReturnToService=2
StateSaveLocation=$folder/state
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmctldPidFile=$folder/slurmctld.pid
END
}

# Make $folder, the key of its munge and its folders. Sets $socket.
make_slurm_folder() {
  mkdir -p "$folder"
  folder=$(readlink -f "$folder")
  mkdir -p "$folder"/{munge,state,spool,log}
  # munged refuses folders that others can write to
  chmod 755 "$folder" "$folder/munge"
  head -c 128 /dev/urandom >"$folder/munge/key"
  chmod 600 "$folder/munge/key"
  socket=$folder/munge/socket
  ((${#socket} < 100)) || die "$folder: path too long for a socket"
}

# In the foreground mode of each daemon, so that $! is its own pid and
# slurm-stop ends these processes and no others.  Usage: start NAME COMMAND...
start() {
  local name=$1
  shift
  setsid "$@" >"$folder/log/$name.out" 2>&1 </dev/null &
  echo "$!" >>"$folder/pids"
}

start_munge() {
  start munged munged --foreground --force --key-file="$folder/munge/key" \
    --socket="$socket" --pid-file="$folder/munge/pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed"
  wait_for 10 test -S "$socket" || fail "munged did not start"
}

fail() {
  tail -n 5 "$folder"/log/* >&2
  "$here/slurm-stop" "$folder"
  die "$1"
}

# wait_for SECONDS COMMAND...
wait_for() {
  local tries=$(($1 * 10))
  shift
  while ((tries-- > 0)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  return 1
}
