# SPDX-License-Identifier: Apache-2.0
# Apache Kafka (KRaft, broker and controller in one) as a test broker; sourced by tools/broker.
#
# Owns the jars (one copy per user, in the cache), the state folder and the processes it starts.
# Ports are chosen, never fixed. Every node also has a PLAINTEXT listener, for probes and administration; --tls and --sasl add
# the one that is tested.

kafka_version=4.3.1
kafka_client_version=2.16.1
kafka_here=$broker_root/tools/broker.d
kafka_jars=$broker_cache/kafka-$kafka_version
kafka_venv=$broker_cache/python-confluent-kafka-$kafka_client_version
kafka_ready_s=120
kafka_java=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData)
kafka_logger=org.slf4j.simpleLogger.

kafka_help() {
    cat >&2 <<'EOF'
tools/broker kafka COMMAND [OPTION...]
  start      start it, or find it running; prints the bootstrap address
  address    print the bootstrap address, also of a killed one
             (--plain: of the listener without TLS and SASL)
  status     say what runs; exit 0 if all nodes do, 1 if not
  kill       SIGKILL, and wait until dead (--node N: only that node)
  restart    start what is dead on the same data and ports, wait until a write is accepted
  stop       SIGTERM, SIGKILL after 10 s; removes the state unless --keep
  log        print the log of node 1 (--node N)
  properties print what a client must set, one key=value a line
  python     print a Python interpreter that has confluent-kafka
  topic NAME PARTITIONS [key=value...] | offsets GROUP | end TOPIC | admin ARG...
             tests/support/kafka_admin.py against this broker
options: --tls, --sasl   another broker of its own, with that listener
         --nodes N       with start: a cluster of N nodes (default 1)
         --set KEY=VALUE with start: one more line of server.properties
         --auto-create   with start: topics are created on first use
environment: KAFKA_BOOTSTRAP (use that broker), LANEWAY_BROKER_DIR, LANEWAY_CACHE,
  LANEWAY_BROKER_OWNER (pid: with start, stops the broker when that process ends)
EOF
}

# --- what it needs ---------------------------------------------------------------------------

kafka_fetch_jars() {
    say "fetching Apache Kafka $kafka_version, once"
    mkdir -p "$1" && mvn -q -B -f "$kafka_here/kafka-pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$1" -DincludeScope=runtime
}

kafka_need_jars() {
    broker_need_java
    [ -d "$kafka_jars" ] || broker_need_command mvn "apt-get install maven"
    broker_make_once "$kafka_jars" kafka_fetch_jars ||
        cannot "the jars of Apache Kafka $kafka_version could not be fetched"
}

kafka_need_python() {
    broker_need_venv "$kafka_venv" "confluent-kafka==$kafka_client_version"
}

kafka_probe() { python3 "$kafka_here/kafka-probe.py" "$@"; }

# --- processes -------------------------------------------------------------------------------

# Prints the pid of node N if that very process lives.
kafka_pid() { broker_pid "$kafka_state/node-$1"; }

kafka_node_numbers() {
    local node
    for node in "$kafka_state"/node-*; do
        [ -d "$node" ] && printf '%s\n' "${node##*-}"
    done
    return 0
}

# Only the numbers that an option chose, or all.
kafka_chosen_nodes() {
    if [ -n "$kafka_node" ]; then
        [ -d "$kafka_state/node-$kafka_node" ] || fail "there is no node $kafka_node"
        printf '%s\n' "$kafka_node"
    else
        kafka_node_numbers
    fi
}

kafka_signal_nodes() {
    local node
    for node in $(kafka_chosen_nodes); do
        broker_signal "$1" "$kafka_state/node-$node"
    done
}

kafka_kill_nodes() {
    local node
    kafka_signal_nodes KILL
    for node in $(kafka_chosen_nodes); do
        broker_wait_dead "$kafka_state/node-$node" 400 || fail "node $node does not die"
    done
}

kafka_run_node() {
    local dir=$kafka_state/node-$1
    kafka_pid "$1" >/dev/null && return
    broker_launch "$dir" "$dir/log" java "${kafka_java[@]}" -Xms96m -Xmx512m \
        -D${kafka_logger}defaultLogLevel=info -D${kafka_logger}showDateTime=true \
        -D${kafka_logger}dateTimeFormat=HH:mm:ss.SSS \
        -cp "$kafka_jars/*" kafka.Kafka "$dir/server.properties"
}

kafka_run_all() {
    local node
    for node in $(kafka_node_numbers); do
        kafka_run_node "$node"
    done
}

# Waits for the answer of a probe as long as every node lives.
kafka_wait_ready() {
    local until=$((SECONDS + kafka_ready_s)) node
    while ! kafka_probe "$1" $(kafka_plain_addresses) 2>"$kafka_state/probe"; do
        for node in $(kafka_node_numbers); do
            kafka_pid "$node" >/dev/null || { say "node $node ended by itself"; return 1; }
        done
        if [ "$SECONDS" -ge "$until" ]; then
            say "not ready after $kafka_ready_s s: $(tail -n 1 "$kafka_state/probe")"
            return 1
        fi
        sleep 0.1
    done
}

# --- state -----------------------------------------------------------------------------------

kafka_joined() { paste -sd, -; }

kafka_plain_addresses() {
    local node
    for node in $(kafka_node_numbers); do
        printf '127.0.0.1:%s\n' "$(sed -n 1p "$kafka_state/node-$node/ports")"
    done
}

kafka_addresses() {
    local node
    [ "$kafka_protocol" = PLAINTEXT ] && { kafka_plain_addresses; return; }
    for node in $(kafka_node_numbers); do
        printf '127.0.0.1:%s\n' "$(sed -n 3p "$kafka_state/node-$node/ports")"
    done
}

kafka_make_certificates() {
    local tls=$kafka_state/tls name
    broker_make_authority "$tls" ca
    for name in server client; do
        broker_make_certificate "$tls" "$name" "$name" DNS:localhost,IP:127.0.0.1
    done
    cat "$tls/server.key" "$tls/server.pem" >"$tls/server.keystore.pem"
}

# $1 node; stdin: the template; the values are the caller's variables.
kafka_write_node() {
    local node=$1 dir=$kafka_state/node-$1 plain controller client listeners
    { read -r plain; read -r controller; read -r client; } <"$dir/ports"
    listeners=PLAINTEXT://127.0.0.1:$plain
    [ "$kafka_protocol" = PLAINTEXT ] || listeners=$listeners,CLIENT://127.0.0.1:$client
    {
        sed -e "s|@NODE@|$node|; s|@DATA@|$dir/data|; s|@VOTERS@|$voters|; s|@REPLICAS@|$replicas|" \
            -e "s|@LISTENERS@|$listeners|; s|@CONTROLLER@|CONTROLLER://127.0.0.1:$controller|" \
            -e "s|@CLIENT_PROTOCOL@|$kafka_protocol|; s|@AUTO_CREATE@|$kafka_auto_create|" \
            "$kafka_here/kafka-server.properties"
        case $kafka_protocol in
        *SSL) sed "s|@TLS@|$kafka_state/tls|" "$kafka_here/kafka-tls.properties" ;;
        esac
        case $kafka_protocol in
        SASL*) cat "$kafka_here/kafka-sasl.properties" ;;
        esac
        # Several controllers would have to authorize each other before they can know the ACLs.
        [ "$kafka_nodes" -gt 1 ] || cat "$kafka_here/kafka-acl.properties"
        printf '%s\n' ${kafka_settings[@]+"${kafka_settings[@]}"}
    } >"$dir/server.properties"
}

kafka_format_node() {
    local dir=$kafka_state/node-$1 scram=()
    case $kafka_protocol in
    SASL*) scram=(--add-scram 'SCRAM-SHA-256=[name=scram,password=scram-secret]') ;;
    esac
    java "${kafka_java[@]}" -Xmx256m -D${kafka_logger}defaultLogLevel=warn -cp "$kafka_jars/*" \
        kafka.tools.StorageTool format -t "$cluster" -c "$dir/server.properties" \
        ${scram[@]+"${scram[@]}"} >>"$dir/log" 2>&1 || { tail -n 5 "$dir/log" >&2; return 1; }
}

kafka_make_state() {
    local node ports voters='' cluster replicas
    rm -rf "$kafka_state"
    replicas=$((kafka_nodes < 3 ? 1 : 3))
    case $kafka_protocol in *SSL) kafka_make_certificates ;; esac
    cluster=$(kafka_probe cluster-id)
    mkdir -p "$kafka_state"
    printf '%s\n' "$cluster" >"$kafka_state/id"
    ports=$(broker_free_ports $((kafka_nodes * 3)))
    for ((node = 1; node <= kafka_nodes; node++)); do
        mkdir -p "$kafka_state/node-$node"
        sed -n "$((node * 3 - 2)),$((node * 3))p" <<<"$ports" >"$kafka_state/node-$node/ports"
        voters=$voters${voters:+,}$node@127.0.0.1:$(sed -n 2p "$kafka_state/node-$node/ports")
    done
    for ((node = 1; node <= kafka_nodes; node++)); do
        kafka_write_node "$node"
        kafka_format_node "$node" || return 1
    done
}

# --- commands --------------------------------------------------------------------------------

kafka_all_run() {
    local node nodes
    nodes=$(kafka_node_numbers)
    [ -n "$nodes" ] || return 1
    for node in $nodes; do
        kafka_pid "$node" >/dev/null || return 1
    done
}

# Another program may take a port between its choice and its use; then all is begun anew.
kafka_start_anew() {
    local tries
    kafka_need_jars
    kafka_node=
    for tries in 1 2 3; do
        kafka_kill_nodes
        kafka_make_state || fail "the storage could not be formatted"
        kafka_run_all
        kafka_wait_ready ready && return
        kafka_kill_nodes
        grep -q BindException "$kafka_state"/node-*/log || break
        say "a port was taken, attempt $tries"
    done
    tail -n 20 "$kafka_state/node-1/log" | cut -c1-200 >&2
    fail "Kafka did not start; its log is $kafka_state/node-1/log"
}

# One that runs may be in the middle of the start of an interrupted caller, so it is asked too.
kafka_start() {
    if ! kafka_all_run || ! kafka_wait_ready ready; then
        kafka_start_anew
        broker_watch_owner "$(<"$kafka_state/id")" ${kafka_variant[@]+"${kafka_variant[@]}"}
    fi
    kafka_addresses | kafka_joined
}

kafka_restart() {
    [ -n "$(kafka_node_numbers)" ] || fail "nothing to restart: no state in $kafka_state"
    kafka_need_jars
    kafka_run_all
    kafka_wait_ready write || fail "Kafka did not come back; its log is $kafka_state/node-1/log"
    kafka_addresses | kafka_joined
}

kafka_stop() {
    local node id
    id=$(cat "$kafka_state/id" 2>/dev/null) || id=
    [ "${kafka_only_id:-$id}" = "$id" ] || return 0
    kafka_signal_nodes TERM
    for node in $(kafka_chosen_nodes); do
        broker_wait_dead "$kafka_state/node-$node" 200 || say "node $node does not stop, killing it"
    done
    kafka_kill_nodes
    if [ -z "$kafka_keep$kafka_node" ]; then
        rm -rf "$kafka_state"
    fi
}

kafka_status() {
    local node pid
    [ -n "$(kafka_node_numbers)" ] || { echo "not started"; return 1; }
    for node in $(kafka_node_numbers); do
        if pid=$(kafka_pid "$node"); then
            echo "node $node runs, pid $pid, $(sed -n 's/^VmRSS:[[:space:]]*//p' \
                "/proc/$pid/status")"
        else
            echo "node $node is dead"
        fi
    done
    kafka_all_run
}

kafka_address() {
    [ -n "$(kafka_node_numbers)" ] || fail "Kafka is not started"
    if [ -n "$kafka_plain" ]; then
        kafka_plain_addresses | kafka_joined
    else
        kafka_addresses | kafka_joined
    fi
}

kafka_properties() {
    printf 'bootstrap.servers=%s\nsecurity.protocol=%s\n' "$(kafka_address)" "$kafka_protocol"
    case $kafka_protocol in
    *SSL) printf 'ssl.ca.location=%s\n' "$kafka_state/tls/ca.pem" ;;
    esac
    case $kafka_protocol in
    SASL*) printf 'sasl.%s\n' mechanism=PLAIN username=laneway password=laneway-secret ;;
    esac
}

kafka_admin() {
    kafka_need_python
    # A variant is a broker of its own: the one that the caller brought is not meant.
    if [ -z "${KAFKA_BOOTSTRAP:-}" ] || [ "$kafka_protocol" != PLAINTEXT ]; then
        KAFKA_BOOTSTRAP=$(kafka_plain=1 kafka_address)
    fi
    KAFKA_BOOTSTRAP=$KAFKA_BOOTSTRAP \
        exec "$kafka_venv/bin/python" "$broker_root/tests/support/kafka_admin.py" "$@"
}

# Tests may be given our own broker by KAFKA_BOOTSTRAP, too; that one obeys.
kafka_is_foreign() {
    [ -n "${KAFKA_BOOTSTRAP:-}" ] && [ "$kafka_protocol" = PLAINTEXT ] &&
        [ "$KAFKA_BOOTSTRAP" != "$(kafka_addresses | kafka_joined)" ]
}

# A broker that the caller brought is used, never started, stopped or killed.
kafka_foreign() {
    case $1 in
    start | address) printf '%s\n' "$KAFKA_BOOTSTRAP" ;;
    status) echo "KAFKA_BOOTSTRAP=$KAFKA_BOOTSTRAP is used" ;;
    stop) ;;
    properties) printf '%s\n' "bootstrap.servers=$KAFKA_BOOTSTRAP" security.protocol=PLAINTEXT ;;
    *) cannot "$1 is not possible with a broker that KAFKA_BOOTSTRAP names" ;;
    esac
}

kafka_parse() {
    local tls='' sasl=''
    kafka_arguments=() kafka_settings=() kafka_variant=() kafka_only_id=
    kafka_nodes=1 kafka_node='' kafka_keep='' kafka_plain='' kafka_auto_create=false
    while [ $# -gt 0 ]; do
        case $1 in
        --tls) tls=1 kafka_variant+=(--tls) ;;
        --sasl) sasl=1 kafka_variant+=(--sasl) ;;
        --keep) kafka_keep=1 ;;
        --plain) kafka_plain=1 ;;
        --auto-create) kafka_auto_create=true ;;
        --nodes | --node | --set | --if)
            [ $# -gt 1 ] || misused "$1 needs a value"
            case $1 in
            --nodes) kafka_nodes=$2 ;;
            --node) kafka_node=$2 ;;
            --if) kafka_only_id=$2 ;;
            --set) kafka_settings+=("$2") ;;
            esac
            shift
            ;;
        *) kafka_arguments+=("$1") ;;
        esac
        shift
        # What follows the first word belongs to that word's command, options too.
        [ "${#kafka_arguments[@]}" -eq 0 ] || { kafka_arguments+=("$@"); break; }
    done
    kafka_protocol=${sasl:+SASL_}${tls:+SSL}
    [ -n "$tls" ] || kafka_protocol=${kafka_protocol}PLAINTEXT
    kafka_state=$broker_folder/kafka${sasl:+-sasl}${tls:+-tls}
}

broker_main() {
    local command=${1:-help}
    [ $# -eq 0 ] || shift
    kafka_parse "$@"
    set -- ${kafka_arguments[@]+"${kafka_arguments[@]}"}
    case $command in
    start | address | status | kill | restart | stop | log | properties)
        if kafka_is_foreign; then
            kafka_foreign "$command"
            return
        fi
        ;;
    esac
    case $command in
    start) broker_locked "$kafka_state" kafka_start ;;
    kill) broker_locked "$kafka_state" kafka_kill_nodes ;;
    restart) broker_locked "$kafka_state" kafka_restart ;;
    stop) broker_locked "$kafka_state" kafka_stop ;;
    address | status | properties) "kafka_$command" ;;
    log) cat "$kafka_state/node-${kafka_node:-1}/log" ;;
    python) kafka_need_python && printf '%s\n' "$kafka_venv/bin/python" ;;
    topic) kafka_admin create "$@" ;;
    offsets | end) kafka_admin "$command" "$@" ;;
    admin) kafka_admin "$@" ;;
    help | --help | -h) kafka_help ;;
    *) misused "kafka has no command $command" ;;
    esac
}
