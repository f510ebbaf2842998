# SPDX-License-Identifier: Apache-2.0
# Apache Pulsar standalone (broker and one bookie in one process) as a test broker; sourced by
# tools/broker.
#
# Owns the jars (one copy per user, in the cache), the state folder and the process it starts.
# Ports are chosen, never fixed. Every variant also has the plain listeners, for administration;
# --tls and --token add what is tested.

pulsar_version=4.2.4
pulsar_client_version=3.13.0
pulsar_dispatcher_version=0.1.0
pulsar_here=$broker_root/tools/broker.d
pulsar_helpers=$broker_root/tests/support/pulsar
pulsar_jars=$broker_cache/pulsar-$pulsar_version
pulsar_venv=$broker_cache/python-pulsar-client-$pulsar_client_version
pulsar_dispatcher_venv=$broker_cache/python-pulsar-dispatcher-$pulsar_dispatcher_version
pulsar_ready_s=120

pulsar_help() {
    cat >&2 <<'EOT'
tools/broker pulsar COMMAND [OPTION...]
  start      start it, or find it running; prints the service URL
  address    print the service URL, also of a killed one
             (--plain: of the listener without TLS; --admin: of the REST interface)
  info       print all that a client may need, one KEY=VALUE a line: URLs, paths of certificates,
             keys and tokens
  status     say whether it runs; exit 0 if it does, 1 if not
  kill       SIGKILL, and wait until dead
  restart    start it on the same data and ports if it is dead, wait until it serves
  stop       SIGTERM, SIGKILL after 10 s; removes the state unless --keep
  log        print its log
  python     print a Python interpreter that has pulsar-client
             (--dispatcher: one that has pulsar-dispatcher, too)
  jars       print the folder of the jars of broker and Java client
  token ROLE [SECONDS]  print a token, which may end in some seconds (--token)
  admin VERB ARG...     tests/support/pulsar/pulsar_admin.py against this broker; -h lists the verbs
  client VERB ARG...    tests/support/pulsar/pulsar_client.py, the official client, the same
options: --tls         another broker of its own, with TLS listeners
         --token       another one that wants tokens, passwords or (with --tls) certificates
         --wrong-host  with --tls: another one, whose certificate names another host
         --set KEY=VALUE  with start: one more line of standalone.conf
environment: PULSAR_URL and PULSAR_ADMIN_URL (use that broker), LANEWAY_BROKER_DIR, LANEWAY_CACHE,
  LANEWAY_BROKER_OWNER (pid: with start, stops the broker when that process ends)
EOT
}

# --- what it needs ---------------------------------------------------------------------------

pulsar_fetch_jars() {
    say "fetching Apache Pulsar $pulsar_version, once"
    mkdir -p "$1" && mvn -q -B -gs "$pulsar_here/pulsar-settings.xml" \
        -f "$pulsar_here/pulsar-pom.xml" dependency:copy-dependencies -DoutputDirectory="$1" \
        -DincludeScope=runtime
}

pulsar_need_jars() {
    broker_need_java
    [ -d "$pulsar_jars" ] || broker_need_command mvn "apt-get install maven"
    broker_make_once "$pulsar_jars" pulsar_fetch_jars ||
        cannot "the jars of Apache Pulsar $pulsar_version could not be fetched"
}

pulsar_need_python() {
    broker_need_venv "$pulsar_venv" "pulsar-client==$pulsar_client_version"
}

pulsar_need_dispatcher() {
    broker_need_venv "$pulsar_dispatcher_venv" "pulsar-client==$pulsar_client_version" \
        "pulsar-dispatcher==$pulsar_dispatcher_version"
}

# --- the process -----------------------------------------------------------------------------

pulsar_port() { sed -n "$1p" "$pulsar_state/ports"; }

pulsar_run() {
    local open=() package
    broker_pid "$pulsar_state" >/dev/null && return
    for package in java.base/java.nio java.base/jdk.internal.misc java.base/java.util.zip \
        java.base/jdk.internal.platform java.management/sun.management java.base/sun.net \
        java.base/java.lang; do
        open+=(--add-opens "$package=ALL-UNNAMED")
    done
    broker_launch "$pulsar_state" "$pulsar_state/output" java -Xmx700m \
        -XX:MaxDirectMemorySize=512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
        -Dio.netty.tryReflectionSetAccessible=true "${open[@]}" \
        -Dlog4j2.configurationFile="$pulsar_here/pulsar-log4j2.xml" -cp "$pulsar_jars/*" \
        org.apache.pulsar.PulsarStandaloneStarter --config standalone.conf -nfw -nss \
        --advertised-address 127.0.0.1 --bookkeeper-port "$(pulsar_port 3)"
}

pulsar_kill() {
    broker_signal KILL "$pulsar_state"
    broker_wait_dead "$pulsar_state" 400 || fail "Pulsar does not die"
}

# Waits until it serves, as long as it lives.
pulsar_wait_ready() {
    local until=$((SECONDS + pulsar_ready_s))
    while ! pulsar_own_admin ready 2>"$pulsar_state/probe"; do
        broker_pid "$pulsar_state" >/dev/null || { say "Pulsar ended by itself"; return 1; }
        if [ "$SECONDS" -ge "$until" ]; then
            say "not ready after $pulsar_ready_s s: $(tail -n 1 "$pulsar_state/probe")"
            return 1
        fi
        sleep 0.1
    done
}

# --- state -----------------------------------------------------------------------------------

pulsar_exists() { [ -s "$pulsar_state/ports" ]; }

pulsar_make_tls() {
    local tls=$pulsar_state/tls
    broker_make_authority "$tls" ca
    broker_make_authority "$tls" other-ca
    broker_make_certificate "$tls" server localhost DNS:localhost,IP:127.0.0.1
    broker_make_certificate "$tls" wrong-host elsewhere.example DNS:elsewhere.example
    broker_make_certificate "$tls" client laneway DNS:client.example
    broker_make_certificate "$tls" guest guest DNS:guest.example
}

pulsar_sign() { python3 "$pulsar_here/pulsar-token.py" make "$@"; }

pulsar_make_tokens() {
    local token=$pulsar_state/token role
    broker_need_command openssl "apt-get install openssl"
    mkdir -p "$token"
    python3 "$pulsar_here/pulsar-token.py" secret "$token/secret.key"
    python3 "$pulsar_here/pulsar-token.py" secret "$token/foreign.key"
    for role in admin laneway guest; do
        pulsar_sign "$token/secret.key" "$role" >"$token/$role.jwt"
    done
    pulsar_sign "$token/secret.key" laneway -3600 >"$token/expired.jwt"
    pulsar_sign "$token/foreign.key" laneway >"$token/foreign.jwt"
    # The broker takes the file as it is: a line's end would be part of the token.
    for role in "$token"/*.jwt; do
        printf '%s' "$(<"$role")" >"$role.new" && mv "$role.new" "$role"
    done
    printf 'laneway:%s\n' "$(openssl passwd -apr1 laneway-secret)" >"$token/passwords"
}

pulsar_write_settings() {
    local package=org.apache.pulsar.broker.authentication providers certificate=server
    providers=$package.AuthenticationProviderToken,$package.AuthenticationProviderBasic
    [ -z "$pulsar_tls" ] || providers=$providers,$package.AuthenticationProviderTls
    [ -z "$pulsar_wrong_host" ] || certificate=wrong-host
    {
        cat "$pulsar_here/pulsar-standalone.conf"
        [ -z "$pulsar_tls" ] || cat "$pulsar_here/pulsar-tls.conf"
        [ -z "$pulsar_token" ] || cat "$pulsar_here/pulsar-token.conf"
        printf '%s\n' ${pulsar_settings[@]+"${pulsar_settings[@]}"}
    } | sed -e "s|@BINARY@|$(pulsar_port 1)|; s|@WEB@|$(pulsar_port 2)|" \
        -e "s|@BINARY_TLS@|$(pulsar_port 4)|; s|@WEB_TLS@|$(pulsar_port 5)|" \
        -e "s|@STATE@|$pulsar_state|; s|@CERTIFICATE@|$certificate|; s|@PROVIDERS@|$providers|" \
        >"$pulsar_state/standalone.conf"
}

pulsar_make_state() {
    rm -rf "$pulsar_state"
    mkdir -p "$pulsar_state"
    python3 -c 'import uuid; print(uuid.uuid4())' >"$pulsar_state/id"
    broker_free_ports 5 >"$pulsar_state/ports"
    if [ -n "$pulsar_tls" ]; then pulsar_make_tls; fi
    if [ -n "$pulsar_token" ]; then pulsar_make_tokens; fi
    pulsar_write_settings
}

# --- commands --------------------------------------------------------------------------------

# An interrupted start leaves nothing behind; the owner's end may also come during it.
pulsar_abandon() {
    trap - INT TERM HUP
    pulsar_kill
    rm -rf "$pulsar_state"
    say "interrupted"
    exit 130
}

# Another program may take a port between its choice and its use; then all is begun anew.
pulsar_start_anew() {
    local tries
    pulsar_need_jars
    trap pulsar_abandon INT TERM HUP
    for tries in 1 2 3; do
        pulsar_kill
        pulsar_make_state
        pulsar_run
        broker_watch_owner "$(<"$pulsar_state/id")" ${pulsar_variant[@]+"${pulsar_variant[@]}"}
        if pulsar_wait_ready; then
            [ -z "$pulsar_token" ] || pulsar_own_admin grant public/default laneway produce consume
            trap - INT TERM HUP
            return
        fi
        pulsar_kill
        cat "$pulsar_state/output" "$pulsar_state/log" 2>/dev/null |
            grep -q 'BindException\|Address already in use' || break
        say "a port was taken, attempt $tries"
    done
    cat "$pulsar_state/log" "$pulsar_state/output" 2>/dev/null | tail -n 20 | cut -c1-200 >&2
    fail "Pulsar did not start; its log is $pulsar_state/log"
}

# One that runs may be in the middle of the start of an interrupted caller, so it is asked too.
pulsar_start() {
    if ! broker_pid "$pulsar_state" >/dev/null || ! pulsar_wait_ready; then
        pulsar_start_anew
    fi
    pulsar_address
}

# A kill may have come in the middle of a write.
pulsar_mend_journal() {
    local journals=("$pulsar_state"/data/standalone/bookkeeper/current/*.txn)
    ! broker_pid "$pulsar_state" >/dev/null || return 0
    [ ! -e "${journals[0]}" ] || python3 "$pulsar_here/pulsar-journal.py" "${journals[@]}"
}

pulsar_restart() {
    pulsar_exists || fail "nothing to restart: no state in $pulsar_state"
    pulsar_need_jars
    pulsar_mend_journal
    pulsar_run
    pulsar_wait_ready || fail "Pulsar did not come back; its log is $pulsar_state/log"
    pulsar_address
}

pulsar_stop() {
    local id
    id=$(cat "$pulsar_state/id" 2>/dev/null) || id=
    [ "${pulsar_only_id:-$id}" = "$id" ] || return 0
    # Data that nobody will see again needs no orderly end.
    if [ -n "$pulsar_keep" ]; then
        broker_signal TERM "$pulsar_state"
        broker_wait_dead "$pulsar_state" 200 || say "Pulsar does not stop, killing it"
    fi
    pulsar_kill
    if [ -z "$pulsar_keep" ]; then
        rm -rf "$pulsar_state"
    fi
}

pulsar_status() {
    local pid
    pulsar_exists || { echo "not started"; return 1; }
    pid=$(broker_pid "$pulsar_state") || { echo "Pulsar is dead"; return 1; }
    echo "Pulsar runs, pid $pid, $(sed -n 's/^VmRSS:[[:space:]]*//p' "/proc/$pid/status")"
}

pulsar_address() {
    pulsar_exists || fail "Pulsar is not started"
    case ${pulsar_want_admin:+admin}-${pulsar_tls:+${pulsar_plain:-tls}} in
    -tls) printf 'pulsar+ssl://127.0.0.1:%s\n' "$(pulsar_port 4)" ;;
    -*) printf 'pulsar://127.0.0.1:%s\n' "$(pulsar_port 1)" ;;
    admin-tls) printf 'https://127.0.0.1:%s\n' "$(pulsar_port 5)" ;;
    admin-*) printf 'http://127.0.0.1:%s\n' "$(pulsar_port 2)" ;;
    esac
}

pulsar_info() {
    local name
    printf 'PULSAR_URL=%s\n' "$(pulsar_address)"
    printf 'PULSAR_URL_PLAIN=%s\n' "$(pulsar_plain=1 pulsar_address)"
    printf 'PULSAR_ADMIN_URL=%s\n' "$(pulsar_plain=1 pulsar_want_admin=1 pulsar_address)"
    if [ -n "$pulsar_tls" ]; then
        printf 'PULSAR_ADMIN_URL_TLS=%s\n' "$(pulsar_want_admin=1 pulsar_address)"
        printf 'PULSAR_CA=%s\nPULSAR_OTHER_CA=%s\n' "$pulsar_state"/tls/{ca,other-ca}.pem
        for name in client guest server wrong-host; do
            printf "PULSAR_%s_%s=$pulsar_state/tls/$name.%s\n" \
                "$(tr a-z- A-Z_ <<<"$name")" CERT pem "$(tr a-z- A-Z_ <<<"$name")" KEY key
        done
    fi
    if [ -n "$pulsar_token" ]; then
        printf 'PULSAR_SECRET_KEY_FILE=%s\n' "$pulsar_state/token/secret.key"
        for name in admin laneway guest expired foreign; do
            printf 'PULSAR_TOKEN_%s_FILE=%s\n' "$(tr a-z A-Z <<<"$name")" \
                "$pulsar_state/token/$name.jwt"
        done
        printf '%s\n' "PULSAR_ADMIN_TOKEN_FILE=$pulsar_state/token/admin.jwt" \
            PULSAR_USER=laneway PULSAR_PASSWORD=laneway-secret
    fi
}

# The helpers meet this broker at its plain listeners, as role admin.
pulsar_export() {
    local each
    unset PULSAR_CA PULSAR_ADMIN_TOKEN_FILE
    PULSAR_ADMIN_URL=$(pulsar_plain=1 pulsar_want_admin=1 pulsar_address)
    [ -z "$pulsar_token" ] || export PULSAR_ADMIN_TOKEN_FILE=$pulsar_state/token/admin.jwt
    export PULSAR_ADMIN_URL
}

pulsar_own_admin() { (pulsar_export && exec python3 "$pulsar_helpers/pulsar_admin.py" "$@"); }

pulsar_admin() {
    broker_need_command python3 "apt-get install python3"
    case ${1:-} in
    -h | --help) ;;
    *) if pulsar_is_foreign; then pulsar_need_admin_url; else pulsar_export; fi ;;
    esac
    exec python3 "$pulsar_helpers/pulsar_admin.py" "$@"
}

# As the client that the variant is for: over TLS, with the token of role laneway.
pulsar_client() {
    local info
    pulsar_need_python
    if ! pulsar_is_foreign; then
        info=$(pulsar_info)
        while IFS='=' read -r key value; do export "$key=$value"; done <<<"$info"
        [ -z "$pulsar_plain" ] || PULSAR_URL=$PULSAR_URL_PLAIN
        : "${PULSAR_TOKEN_FILE:=${PULSAR_TOKEN_LANEWAY_FILE:-}}"
        export PULSAR_TOKEN_FILE
    fi
    exec "$pulsar_venv/bin/python" "$pulsar_helpers/pulsar_client.py" "$@"
}

pulsar_token() {
    [ -n "$pulsar_token" ] || misused "a token is for the variant --token"
    [ $# -ge 1 ] || misused "token needs a role"
    pulsar_exists || fail "Pulsar is not started"
    pulsar_sign "$pulsar_state/token/secret.key" "$@"
}

pulsar_python() {
    if [ -n "$pulsar_dispatcher" ]; then
        pulsar_need_dispatcher && printf '%s\n' "$pulsar_dispatcher_venv/bin/python"
    else
        pulsar_need_python && printf '%s\n' "$pulsar_venv/bin/python"
    fi
}

pulsar_print_jars() { pulsar_need_jars && printf '%s\n' "$pulsar_jars"; }

# --- a broker that the caller brought is used, never started, stopped or killed ---------------

# Tests may be given our own broker by PULSAR_URL, too; that one obeys.
pulsar_is_foreign() {
    [ -n "${PULSAR_URL:-}" ] && [ ${#pulsar_variant[@]} -eq 0 ] &&
        { ! pulsar_exists || [ "$PULSAR_URL" != "$(pulsar_address)" ]; }
}

pulsar_need_admin_url() {
    [ -n "${PULSAR_ADMIN_URL:-}" ] || cannot "PULSAR_URL is set, PULSAR_ADMIN_URL is not"
}

pulsar_foreign() {
    case $1 in
    start | address)
        if [ -n "$pulsar_want_admin" ]; then
            pulsar_need_admin_url
            printf '%s\n' "$PULSAR_ADMIN_URL"
        else
            printf '%s\n' "$PULSAR_URL"
        fi
        ;;
    info) printf '%s\n' "PULSAR_URL=$PULSAR_URL" "PULSAR_ADMIN_URL=${PULSAR_ADMIN_URL:-}" ;;
    status) echo "PULSAR_URL=$PULSAR_URL is used" ;;
    stop) ;;
    *) cannot "$1 is not possible with a broker that PULSAR_URL names" ;;
    esac
}

pulsar_parse() {
    pulsar_arguments=() pulsar_settings=() pulsar_variant=() pulsar_only_id=
    pulsar_tls='' pulsar_token='' pulsar_wrong_host='' pulsar_keep='' pulsar_plain=''
    pulsar_want_admin='' pulsar_dispatcher=''
    while [ $# -gt 0 ]; do
        case $1 in
        --tls) pulsar_tls=1 pulsar_variant+=(--tls) ;;
        --token) pulsar_token=1 pulsar_variant+=(--token) ;;
        --wrong-host) pulsar_wrong_host=1 pulsar_variant+=(--wrong-host) ;;
        --keep) pulsar_keep=1 ;;
        --plain) pulsar_plain=plain ;;
        --admin) pulsar_want_admin=1 ;;
        --dispatcher) pulsar_dispatcher=1 ;;
        --set | --if)
            [ $# -gt 1 ] || misused "$1 needs a value"
            case $1 in
            --if) pulsar_only_id=$2 ;;
            --set) pulsar_settings+=("$2") ;;
            esac
            shift
            ;;
        *) pulsar_arguments+=("$1") ;;
        esac
        shift
        # What follows the first word belongs to that word's command, options too.
        [ "${#pulsar_arguments[@]}" -eq 0 ] || { pulsar_arguments+=("$@"); break; }
    done
    [ -z "$pulsar_wrong_host" ] || [ -n "$pulsar_tls" ] || misused "--wrong-host is for --tls"
    pulsar_state=$broker_folder/pulsar${pulsar_token:+-token}${pulsar_tls:+-tls}
    pulsar_state=$pulsar_state${pulsar_wrong_host:+-wrong-host}
}

broker_main() {
    local command=${1:-help}
    [ $# -eq 0 ] || shift
    pulsar_parse "$@"
    set -- ${pulsar_arguments[@]+"${pulsar_arguments[@]}"}
    case $command in
    start | address | info | status | kill | restart | stop | log)
        [ $# -eq 0 ] || misused "$command takes no $1"
        if pulsar_is_foreign; then
            pulsar_foreign "$command"
            return
        fi
        ;;
    esac
    # What watched a broker whose folder has gone since must not make it anew for its lock.
    [ -z "$pulsar_only_id" ] || pulsar_exists || return 0
    case $command in
    start | kill | restart | stop) broker_locked "$pulsar_state" "pulsar_$command" ;;
    address | info | status | python) "pulsar_$command" ;;
    jars) pulsar_print_jars ;;
    token | admin | client) "pulsar_$command" "$@" ;;
    log) cat "$pulsar_state/log" ;;
    help | --help | -h) pulsar_help ;;
    *) misused "pulsar has no command $command" ;;
    esac
}
