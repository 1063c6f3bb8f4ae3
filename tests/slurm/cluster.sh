#!/usr/bin/env bash
# A real Slurm of one node, this machine, on the loopback interface; Debian, root, no systemd needed.
#   tests/slurm/cluster.sh up     install what is missing, start munge, controller and node
#   tests/slurm/cluster.sh down   cancel every job, stop them and remove their configuration
set -euo pipefail

RUN=/run/slurm
CONF=/etc/slurm/slurm.conf
MARK='# Written by tests/slurm/cluster.sh.'
NODE="$(hostname -s)"

running() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

up() {
  if [ -s "$CONF" ] && ! grep -qxF "$MARK" "$CONF"; then
    echo "error: $CONF is not from this script; remove it if this machine's own Slurm is not needed" >&2
    exit 2
  fi
  if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
  fi
  grep -qw "$NODE" /etc/hosts || echo "127.0.0.1 $NODE" >>/etc/hosts

  [ -s /etc/munge/munge.key ] || mungekey --create
  chown munge: /etc/munge/munge.key
  install -d -o munge -g munge -m 0755 /run/munge
  install -d -o munge -g munge -m 0700 /var/log/munge
  munge -n 2>/dev/null | unmunge >/dev/null 2>&1 || runuser -u munge -- munged
  munge -n | unmunge >/dev/null

  install -d /var/log/slurm /var/spool/slurmctld /var/spool/slurmd "$RUN"
  local memory
  memory=$(($(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo) - 1024))
  # Memory is scheduled, not enforced: enforcing needs control groups, which not every machine has.
  cat >"$CONF" <<CONF
$MARK
ClusterName=test
SlurmctldHost=$NODE(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=$RUN/slurmctld.pid
SlurmdPidFile=$RUN/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=/var/log/slurm/jobs.log
MpiDefault=none
ReturnToService=2
EnforcePartLimits=ALL
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MinJobAge=300
MailProg=/bin/true
NodeName=$NODE NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=$NODE Default=YES MaxTime=INFINITE DefMemPerCPU=1000 State=UP
CONF
  # Two GPUs that can be asked for and are not there: any device file stands for one.
  printf "NodeName=$NODE Name=gpu File=/dev/%s\n" null zero >/etc/slurm/gres.conf
  running "$RUN/slurmctld.pid" || slurmctld -c
  running "$RUN/slurmd.pid" || slurmd
  for _ in $(seq 60); do
    [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
    sleep 0.25
  done
  sinfo -o '%P %T %C %m'
  [ "$(sinfo -h -o %T)" = idle ]
}

down() {
  if command -v scancel >/dev/null && running "$RUN/slurmctld.pid"; then
    scancel --user="$(id -un)" || true
  fi
  local file pid
  for file in "$RUN/slurmd.pid" "$RUN/slurmctld.pid" /run/munge/munged.pid; do
    running "$file" || continue
    pid="$(cat "$file")"
    kill "$pid"
    for _ in $(seq 40); do
      grep -qs '^State:\s*[^Z]' "/proc/$pid/status" || break
      sleep 0.25
    done
  done
  rm -f "$RUN"/*.pid
  # With it, Slurm's commands, and so every start of Snakemake, would wait for the controller.
  if grep -qsxF "$MARK" "$CONF"; then
    rm -f "$CONF" /etc/slurm/gres.conf
  fi
}

case "${1:-}" in
up | down) "$1" ;;
*)
  sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
