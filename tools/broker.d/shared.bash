# SPDX-License-Identifier: Apache-2.0
# What every broker of tools/broker needs; sourced before the broker's own file.
#
# Programs and packages it needs, made once per user in the cache; processes, known by pid and
# start time together, so that a reused pid is never killed; certificates of a throw-away
# authority. The caller has set broker_name (kafka, pulsar), broker_root and broker_cache.

# --- what is needed --------------------------------------------------------------------------

broker_need_command() {
    command -v "$1" >/dev/null || cannot "$broker_name needs $1, which is not installed ($2)"
}

broker_need_java() {
    broker_need_command java "apt-get install openjdk-17-jre-headless"
    broker_need_command python3 "apt-get install python3"
    broker_need_command flock "apt-get install util-linux"
}

# Puts what COMMAND makes (at its last argument) at TARGET: once, whoever calls at the same time.
broker_make_once() {
    local target=$1
    shift
    [ -e "$target" ] && return
    mkdir -p "$broker_cache"
    (
        flock 8
        [ -e "$target" ] && exit 0
        rm -rf "$target.new"
        "$@" "$target.new" >&2 8>&- && mv "$target.new" "$target"
    ) 8>"$target.lock"
}

# The path of a venv is written into it, so it is made in place and marked when complete.
# broker_make_venv VENV REQUIREMENT... MARKER
broker_make_venv() {
    local venv=$1 python marker=${!#}
    local requirements=("${@:2:$#-2}")
    say "installing ${requirements[*]}, once"
    for python in python3 /usr/bin/python3; do
        rm -rf "$venv"
        if "$python" -m venv "$venv" && "$venv/bin/pip" -q install "${requirements[@]}"; then
            : >"$marker"
            return
        fi
    done
    return 1
}

# broker_need_venv VENV REQUIREMENT...: VENV/bin/python has these packages, or the caller skips.
broker_need_venv() {
    local venv=$1
    broker_need_command python3 "apt-get install python3-venv"
    # A marker whose interpreter has gone, by an upgrade say, is worth nothing.
    "$venv/bin/python" -c '' 2>/dev/null || rm -f "$venv.complete"
    broker_make_once "$venv.complete" broker_make_venv "$@" ||
        cannot "${*:2} could not be installed"
}

broker_free_ports() { python3 "$broker_root/tools/broker.d/free-ports.py" "$1"; }

# --- processes -------------------------------------------------------------------------------

broker_start_time() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- ${stat##*) }
    [ "$1" != Z ] && printf '%s\n' "${20}"
}

# broker_pid FOLDER: prints the pid of the process started there, if that very process lives.
broker_pid() {
    local pid started
    { read -r pid started <"$1/pid"; } 2>/dev/null || return 1
    [ "$(broker_start_time "$pid")" = "$started" ] && printf '%s\n' "$pid"
}

# broker_wait_dead FOLDER TRIES: a try is 50 ms.
broker_wait_dead() {
    local tries=$2
    while broker_pid "$1" >/dev/null; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        sleep 0.05
    done
}

broker_signal() {
    local pid
    if pid=$(broker_pid "$2"); then
        kill "-$1" "$pid" 2>/dev/null || true
    fi
}

# Becomes a program without descriptors of the caller: who reads our output would wait for it.
broker_detach() {
    local fd
    for fd in /proc/self/fd/*; do
        fd=${fd##*/}
        [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
    exec setsid "$@"
}

# broker_launch FOLDER OUTPUT COMMAND...: runs it there in the background and notes its pid.
broker_launch() {
    local folder=$1 output=$2 pid
    shift 2
    (cd "$folder" && broker_detach "$@") </dev/null >>"$output" 2>&1 &
    pid=$!
    disown "$pid"
    printf '%s %s\n' "$pid" "$(broker_start_time "$pid")" >"$folder/pid"
}

# broker_watch_owner ID OPTION...: stops the broker with this id, and no later one, when the
# process LANEWAY_BROKER_OWNER has ended. Does nothing without an owner.
broker_watch_owner() {
    local id=$1
    shift
    [ -n "${LANEWAY_BROKER_OWNER:-}" ] || return 0
    broker_detach python3 "$broker_root/tools/broker.d/when-dead.py" "$LANEWAY_BROKER_OWNER" \
        "$broker_root/tools/broker" "$broker_name" stop "$@" --if "$id" \
        </dev/null >/dev/null 2>&1 &
    disown $!
}

# broker_locked STATE COMMAND...: one command at a time changes the state.
broker_locked() {
    mkdir -p "$(dirname "$1")"
    exec 9>"$1.lock"
    flock 9
    "${@:2}"
}

# --- certificates ----------------------------------------------------------------------------

# broker_make_authority FOLDER NAME: NAME.pem and NAME.key, good for 30 days.
broker_make_authority() {
    broker_need_command openssl "apt-get install openssl"
    mkdir -p "$1"
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=laneway-test-$2" \
        -keyout "$1/$2.key" -out "$1/$2.pem" 2>/dev/null
}

# broker_make_certificate FOLDER NAME COMMON_NAME ALTERNATIVE_NAMES: signed by FOLDER/ca.pem.
broker_make_certificate() {
    local at=$1/$2
    printf 'subjectAltName=%s\n' "$4" >"$at.extensions"
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$3" -keyout "$at.key" -out "$at.csr" 2>/dev/null
    openssl x509 -req -in "$at.csr" -CA "$1/ca.pem" -CAkey "$1/ca.key" -CAcreateserial \
        -days 30 -extfile "$at.extensions" -out "$at.pem" 2>/dev/null
}
