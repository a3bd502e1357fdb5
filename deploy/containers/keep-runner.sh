#!/bin/sh
# keep-runner.sh STATE_DIR PROGRAM ARGUMENT... - keeps the runner's daemon running inside a container.
#
# Runs outlive the daemon, but nothing outlives its container. So the container does not end when the daemon falls: the
# daemon is started again and adopts its runs.
#   HUP        start the daemon again, to read a changed runner.yaml; runs go on
#   TERM, INT  stop the daemon, end every run so that it is told as cancelled and not as lost, and end

state_dir=$1
shift
pause=${KEEP_RUNNER_SECONDS:-2}
stop=no
child=

# shellcheck disable=SC2317 # it is called by the traps
stop_child() { [ -z "$child" ] || kill -s TERM "$child" 2>/dev/null; }
trap 'stop=yes; stop_child' TERM INT
trap 'stop_child' HUP

wait_for_child() { # a trap interrupts `wait`, so ask again until the child is gone
    status=0
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        status=$?
    done
    child=
}

supervisors() { # the last argument of a supervisor is the folder of its run
    grep -slz "^$state_dir/runs/run-[^/]*\$" /proc/[0-9]*/cmdline | cut -d / -f 3
}

while [ "$stop" = no ]; do
    "$@" &
    child=$!
    wait_for_child
    [ "$stop" = no ] || break
    echo "keep-runner: the daemon ended with status $status and is started again in $pause s" >&2
    sleep "$pause" & # in the background, since a trap waits for what is in the foreground
    child=$!
    wait_for_child
done

for supervisor in $(supervisors); do
    kill -s TERM "$supervisor"
done
while [ -n "$(supervisors)" ]; do # bounded by whoever stops the container
    sleep 0.2
done
exit "$status"
