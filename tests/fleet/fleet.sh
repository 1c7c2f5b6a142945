# fleet.sh: a coordinator and simulated nodes on loopback, for TAP scripts.
# Source it after tap.sh. Everything lives below $dir and ends with the test.
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
G=$BUILD/garboard
dir=$(mktemp -d "${TMPDIR:-/tmp}/fleet.XXXXXX")
state=$dir/state
serve_pid= sim_pid=
at_exit 'fleet_end'

fleet_end() {
	[ -z "$sim_pid" ] || kill "$sim_pid" 2>/dev/null
	[ -z "$serve_pid" ] || kill "$serve_pid" 2>/dev/null
	wait 2>/dev/null
	# Built with sanitizers, what they say is a failure, also at the end.
	if grep -h -A5 -e "Sanitizer" -e "runtime error" "$dir"/*.log "$dir/stderr" 2>/dev/null |
		sed 's/^/# /' | grep .; then
		tap_bad=1
	fi
	rm -rf "$dir"
}

g() { "$G" "$@" --state "$state" 2>>"$dir/stderr"; }
ctl() { "$BUILD/tests/fleet/fleetctl" "$state" "$@"; }

free_port() {
	python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# The port is asked of the kernel once and kept over restarts of serve.
fleet_init() {
	port=$(free_port)
	g init -c fleet --listen 127.0.0.1:$port --address 127.0.0.1:$port \
		>"$dir/init" || bail "init: $(cat "$dir/stderr")"
}

serve_up() { [ -S "$state/control.sock" ] && ctl held nobody >/dev/null; }
serve_start() {
	"$G" serve --state "$state" "$@" 2>>"$dir/serve.log" &
	serve_pid=$!
	wait_until 10 serve_up || bail "serve: $(cat "$dir/serve.log")"
}
serve_stop() { # signal
	kill -"$1" "$serve_pid"
	wait "$serve_pid" 2>/dev/null
	serve_rc=$?
	serve_pid=
}

# Nodes NAME1..NAMEn with tokens; commands go to fd 7, facts to $dir/sim.log.
sim_start() { # prefix, count, [tokens file]
	mkfifo "$dir/sim.in"
	"$BUILD/tests/fleet/simfleet" "$dir/bundle" "$@" \
		<"$dir/sim.in" >"$dir/sim.log" 2>&1 &
	sim_pid=$!
	exec 7>"$dir/sim.in"
}
sim_said() { grep -q -x -e "$1" "$dir/sim.log"; }
sim_count() { grep -c -x -e "$1" "$dir/sim.log"; }
sim_said_times() { [ "$(sim_count "$1")" -ge "$2" ]; }
sim() { # a command, and its answer
	sim_before=$(grep -c -E "^[^ ]+ (ok|error) " "$dir/sim.log")
	echo "$1" >&7
	wait_until 5 sim_answered
}
sim_answered() { [ "$(grep -c -E "^[^ ]+ (ok|error) " "$dir/sim.log")" -gt "$sim_before" ]; }
logged() { grep -q -e "$1" "$dir/serve.log"; }
logged_times() { grep -c -e "$1" "$dir/serve.log"; }
