/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the catalogue. Keep them in order of their codes; never give a code a new meaning,
 * and never take one away that a released version printed. How they are shown is in
 * catalogue_print.c.
 */
#include "service/catalogue.h"

#include <string.h>
#include <strings.h>

#include "base/option.h"

static const struct lw_catalogue_entry entries[] = {
    { "E0101", "unknown key",
      "The configuration has a key that means nothing at that place. Keys are checked so that "
      "a "
      "misspelt one cannot silently leave a default in force.",
      "Correct the spelling or move the key; docs/configuration.md lists all keys. Keys for "
      "other "
      "programs belong under `extensions`." },
    { "E0102", "this is not YAML",
      "The file could not be parsed. The position is where the parser gave up, which may be a "
      "line after the mistake.",
      "Look for a tab, a missing quote, a missing space after a colon, or wrong indentation." },
    { "E0103", "wrong kind of value",
      "A list, a section or a value of another type was expected, such as true or false, or a "
      "whole number.",
      "Write the kind of value that the message names." },
    { "E0104", "a unit is missing",
      "Durations and sizes need a unit, since a bare number would be a guess. Only 0 needs "
      "none.",
      "Write 250ms, 30s, 5m, 1h30m or 64KiB, 1MiB, 1MB." },
    { "E0105", "out of range", "The value is smaller or larger than the option allows.",
      "Choose a value in the range that the message names." },
    { "E0106", "unknown word", "The option takes one of a few words, and this is none of them.",
      "Use one of the words that the message lists." },
    { "E0107", "a required key is missing", "The section cannot work without this key.",
      "Add the key." },
    { "E0108", "a key is given twice",
      "YAML readers differ in which of two equal keys wins, so both are refused. Two spellings "
      "of "
      "one key count as the same.",
      "Keep one of them." },
    { "E0109", "anchors, aliases, tags and merge keys are refused",
      "They make a configuration mean something else than it shows.",
      "Write the value out where it is needed; quote a value that begins with &, * or !." },
    { "E0110", "the file is too large or too deep",
      "A configuration is at most 1 MiB, 20,000 values and 32 levels.",
      "Split it into several files; later files are laid over earlier ones." },
    { "E0111", "the file is not UTF-8 text", "Configurations are UTF-8.", "Save it as UTF-8." },
    { "E0112", "unknown version of the format",
      "`version` says which format the file is written in. This program reads version 1.",
      "Write version: 1, or use a newer program." },
    { "E0113", "not in this version",
      "The key, word or broker belongs to a later version of Laneway. It is refused rather "
      "than "
      "ignored.",
      "Leave it out, or use a version that has it." },
    { "E0114", "an environment variable is not set",
      "The file refers to ${NAME}, and neither the environment nor an --env-file has NAME.",
      "Set the variable, or give a default with ${NAME:-default}." },
    { "E0115", "the file of a value cannot be read",
      "The file that ${file:PATH} names is absent, unreadable, too large or not text. Relative "
      "paths begin at the folder of the configuration.",
      "Check path and permissions." },
    { "E0116", "a configuration file cannot be read",
      "The file is absent or unreadable, or no file was given.",
      "Give a file with -c FILE or in LANEWAY_CONFIG." },
    { "E0117", "not a usable name",
      "Names of entries are letters, digits, _ and -. Names of topics are letters, digits, ., "
      "_ "
      "and -, at most 249; names made from a pattern, such as {topic}.dlq, must fit too.",
      "Choose another name." },
    { "E0118", "--set names no option", "The path of --set PATH=VALUE leads to no option.",
      "Write it as in --set pipelines.orders.retry.max_retries=3." },
    { "E0119", "a line of a .env file cannot be read",
      "A line is neither empty, nor a comment, nor NAME=VALUE with closed quotes.",
      "Correct the line. Its text is not shown, because such files hold secrets." },
    { "E0120", "a reference is malformed",
      "A value contains ${...} that is no reference, or that is not closed.",
      "Write ${NAME}, ${NAME:-default} or ${file:PATH}; $$ is a dollar sign." },
    { "E0121", "a value is missing",
      "A key has nothing behind it, or a list or section is empty.",
      "Give it a value, or leave the key out." },
    { "E0122", "not a broker's address", "The url of a broker could not be understood.",
      "Write kafka://HOST:PORT[,HOST:PORT], pulsar://HOST:PORT[,HOST:PORT], pulsar+ssl:// for "
      "TLS, spool:FILE, or memory:. Credentials do not belong into an address." },
    { "E0123", "not a topic name of Pulsar",
      "A name is one word, tenant/namespace/topic, or persistent:// or non-persistent:// "
      "before "
      "those three. Tenant and namespace are letters, digits and - _ = : .",
      "Correct the name. Pulsar's names are at most 1,023 bytes with domain and partition." },
    { "E0124", "not a pattern of topics",
      "The namespace of a pattern is fixed, and the topic's own name is a regular expression "
      "that must match all of it. Look-around, back references and possessive quantifiers are "
      "not known.",
      "Write orders_.* or persistent://tenant/namespace/orders_.*" },
    { "E0125", "not the address of a service",
      "The address of a handler behind HTTP could not be understood. Credentials in it would "
      "be "
      "shown, and a part behind # would never be sent, so both are refused.",
      "Write http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH." },
    { "E0126", "a header cannot be sent",
      "A header of `headers` is made by Laneway itself, or its name or value is none that HTTP "
      "allows.",
      "Correct its name, put the value on one line, or leave the header out." },
    { "E0201", "no broker of that name",
      "A pipeline names a broker that is not under `brokers`.",
      "Correct the name, or add the broker." },
    { "E0202", "no handler of that name",
      "A pipeline names a handler that is not under `handlers`.",
      "Correct the name, or add the handler." },
    { "E0203", "no function of that name",
      "A handler names a C function that the embedding program did not bind.",
      "Pass the function to lw_dispatcher_load, or correct the name." },
    { "E0204", "no such topic here", "The running service reads no topic of that name.",
      "`laneway status` lists the topics." },
    { "E0205", "no such pipeline or topic",
      "The running service has neither a pipeline nor a topic of that name.",
      "`laneway status` lists them." },
    { "E0206", "an unknown placeholder",
      "A name uses {...} that stands for nothing at that place.",
      "Use {topic}, {group}, or a map of the matrix." },
    { "E0207", "no such program",
      "The program of a handler is neither in PATH nor at the given path, or is not "
      "executable.",
      "Check the path (it begins at the folder of the configuration) and the permissions." },
    { "E0301", "a topic is read twice in one group",
      "A consumer group gives each message to one reader. Two pipelines in one group would "
      "share "
      "the messages between two handlers.",
      "Use another group for one of them, or put the topic into one pipeline." },
    { "E0302", "dead letters come back",
      "A dead-letter topic is read here in a way that leads back to where the message came "
      "from, "
      "so a message that cannot be handled would go round for ever.",
      "Choose a dead-letter topic that nobody here reads." },
    { "E0303", "a level is there twice",
      "Names of levels are lower-cased, because they become parts of topic names.",
      "Rename or remove one of them." },
    { "E0304", "the matrix cannot be expanded",
      "A matrix has one or two maps of levels, each used in the name; the numbers of the "
      "second "
      "map are 0 or more; at most 10,000 topics come out.",
      "Correct the matrix, or write the topics out as a list." },
    { "E0305", "priorities of a family overlap",
      "A topic's priority is the sum of its levels. If the largest number of the second map is "
      "not smaller than the smallest gap of the first, some topics of a worse level come "
      "before "
      "or beside topics of a better one.",
      "Widen the gap, as the message suggests." },
    { "E0306", "one group, two sets of client properties",
      "One client reads for a consumer group, so pipelines of one group must agree on "
      "consumer.properties.",
      "Make them the same, or give one pipeline a group of its own." },
    { "E0307", "a retry topic breaks the order",
      "A copy in a retry topic comes back later, and messages of the same key or partition "
      "overtake it meanwhile.",
      "Retry in place (in_place: true), or accept it with allow_overtaking: true, or say "
      "ordering: none." },
    { "E0308", "retry options contradict each other",
      "Retries in place count runs (max_attempts); republication counts copies (max_retries). "
      "An "
      "option of the way that is not configured would silently do nothing.",
      "Use the options of the way that you want; the help of the message names them." },
    { "E0309", "nobody reads the retry topic",
      "As warnings W0301 and W0316, made an error by retry_warnings: error.",
      "Add the topic to a pipeline with a shared subscription, or say external: true." },
    { "E0310", "limits contradict each other",
      "Two numbers exclude each other, such as a first delay above the longest.",
      "Correct one of them." },
    { "E0311", "handler and engine do not fit",
      "A handler is one of program, plugin, http, builtin and function, and not every engine "
      "runs "
      "every "
      "handler: programs run on engine programs; what blocks needs threads; what waits without "
      "blocking needs the loop.",
      "Leave `engine` out, or choose one that fits." },
    { "E0312", "the type of the subscription cannot keep the order",
      "On Pulsar a shared subscription gives messages of one key to several members, and "
      "key_shared those of one partition. An order kept by one member alone would be none.",
      "Use type key_shared, failover or exclusive for ordering: key, failover or exclusive for "
      "ordering: partition, or leave the ordering out." },
    { "E0313", "the type of the subscription cannot delay a retry",
      "On exclusive and failover subscriptions the broker gives back everything from the "
      "oldest "
      "unfinished message on, at once; one message alone cannot be given back with a delay.",
      "Retry in place, or through a retry topic that a shared subscription reads." },
    { "E0314", "tls for an address without TLS",
      "`tls` of a handler behind HTTP means nothing for http://, and would protect nothing.",
      "Write https://, or leave `tls` out." },
    { "E0315", "one file, two brokers",
      "Two brokers of the configuration are the same spool. One owner has a file, so the "
      "second "
      "could not read it.",
      "Name the file once, and use that broker in every pipeline and target." },
    { "E0320", "the batches do not fit",
      "A batch must be able to fill within max_in_flight, one of a single key needs an "
      "order by key or partition, and the handler must take several messages at once: a "
      "function or plug-in for batches, a program of protocol lines or frames that says so, a "
      "service behind HTTP, or a built-in one that blocks. Where order is kept, a reply that "
      "is too large "
      "cannot lead to a "
      "retry in place: those behind its message are over by then.",
      "Change batch, or what the message names beside it." },
    { "E0410", "the client does not know a property",
      "Properties are handed to the client library unchanged. This one it does not have, or it "
      "lacks another one that belongs to it.",
      "Correct the spelling. The list of the client's properties follows below." },
    { "E0411", "the property is set by Laneway",
      "Some properties of the client carry the guarantees of Laneway: committing, offsets, the "
      "group, confirmations, callbacks. They cannot be given.",
      "Leave it out; the message says what does its work." },
    { "E0412", "the client refuses a value",
      "The property exists, but not with this value (or the value would do harm here).",
      "Write a value that the client takes." },
    { "E0413", "the memory broker has no such property",
      "The broker inside the process has mode (position or individual), sharing (shared or "
      "exclusive), protocol (eager or cooperative) and partitions, and none for consumers.",
      "Leave the property out." },
    { "E0414", "there is no such option of Pulsar",
      "Options of Pulsar have the names of the Python client. This one no client has, or it "
      "stands in the wrong place: options of client and producer belong to the broker.",
      "Correct the spelling; docs/pulsar-options.md lists all." },
    { "E0415", "an option of the Pulsar clients is not served",
      "The clients have this option, but Laneway has another way for it, or none. It is "
      "refused "
      "rather than ignored.",
      "Leave it out; the message and docs/pulsar-options.md say what is there instead." },
    { "E0416", "a wrong value for an option of Pulsar",
      "The option exists, but not with this value.",
      "Write a value of the kind and range that the message names." },
    { "E0417", "credentials for Pulsar cannot be used",
      "The method is unknown or incomplete, or the token, key file or variable that it names "
      "cannot be read or is malformed. Secrets are never shown.",
      "Correct auth.token, or auth.plugin and auth.params. Files and variables are read again "
      "at every "
      "connection." },
    { "E0418", "a TLS file cannot be used",
      "A trust file, certificate or private key is absent, unreadable, encrypted, not PEM, or "
      "does not belong to the other.",
      "Check the path and permissions that the message names." },
    { "E0419", "options of Pulsar contradict each other",
      "Two options, or an option and the type of the subscription, exclude each other.",
      "Change one of those that the message names." },
    { "E0420", "the key is for another kind of broker",
      "`auth` and `tls` are words for Pulsar. Elsewhere they would protect nothing, so they "
      "are "
      "refused.",
      "On Kafka use the client's properties: security.protocol, sasl.mechanism, "
      "ssl.ca.location." },
    { "E0421", "a spool has no such property",
      "A spool has synchronous, partitions, keep, retention, retention_bytes, file_bytes_max "
      "and "
      "redelivery_delay; who reads it has initial_position.",
      "Correct the spelling, or leave it out; docs/spool.md says what each does." },
    { "E0422", "a wrong value for a property of a spool",
      "The property exists, but not with this value.",
      "Write a value of the kind and range that the message names." },
    { "E0501", "a broker cannot be used",
      "The broker cannot be reached, or it closed the connection. Nothing is lost: Laneway "
      "keeps "
      "trying, and messages wait at the broker.",
      "Check address, network and security.protocol. A TLS listener closes plaintext "
      "connections "
      "at once." },
    { "E0502", "the broker refused the credentials",
      "User, password, token or certificate were not accepted.",
      "Check sasl.* and ssl.* properties, and the user's rights at the broker." },
    { "E0503", "a topic does not exist",
      "The topic (or the partition that was asked for) is not at the broker, and the broker "
      "does "
      "not create it.",
      "Create it, or correct its name; `laneway topics plan FILE` lists what is needed." },
    { "E0504", "no right to use a topic or group",
      "The broker's access rules forbid reading the topic or joining the group.",
      "Ask for the right; the name of topic and group is in the message." },
    { "E0505", "publishing is blocked",
      "A dead letter, retry copy or reply cannot be published, because the topic is absent or "
      "forbidden. Receiving has stopped; nothing is lost and no message is charged.",
      "Create the topic or grant the right; Laneway goes on by itself." },
    { "E0506", "no stored offset",
      "The group has no offset for a partition, or one that is out of range, and "
      "auto.offset.reset says none (error).",
      "Set auto.offset.reset to earliest or latest, or give the group an offset." },
    { "E0507", "a group cannot subscribe", "The client library refused the list of topics.",
      "The message holds the client's words; check the names of topics and group." },
    { "E0508", "no broker for this address", "The scheme of the address is not known.",
      "Write kafka://HOST:PORT[,HOST:PORT], pulsar://HOST:PORT[,HOST:PORT], spool:FILE or "
      "memory:." },
    { "E0509", "TLS met plaintext", "One side speaks TLS and the other does not.",
      "Write pulsar+ssl:// for a listener with TLS (usually port 6651) and pulsar:// for one "
      "without (usually 6650)." },
    { "E0510", "the broker's certificate is not trusted",
      "It expired, is not valid yet, or was signed by nobody whom we trust.",
      "Renew it, or give the authority's certificate in tls.trust_file; check this computer's "
      "clock." },
    { "E0511", "the broker's certificate is for another host",
      "The name in the address is not among the names in the certificate.",
      "Use a name that stands in the certificate, as address and as the broker's advertised "
      "address. tls.validate_hostname: false accepts any." },
    { "E0512", "the TLS connection failed",
      "The broker refused our certificate or wants one, the two sides share no protocol, or "
      "the connection was cut off.",
      "The message has the broker's words; check tls_certificate_file_path and the key." },
    { "E0513", "no token could be fetched",
      "The issuer of OAuth2 tokens cannot be reached, or refused the client.",
      "Check issuer_url, audience, scope, id and secret in auth_params. Laneway tries again." },
    { "E0514", "the broker refused a request",
      "The broker answered with an error of its own, such as a subscription that is taken "
      "or of another type, or a quota that is exceeded.",
      "The message holds the broker's code and words; where waiting helps, Laneway tries "
      "again." },
    { "E0520", "a spool is in use by another process",
      "One process owns a spool and reads it; the message names that process. `send` and "
      "`peek` "
      "go through it, a second `run` cannot. Or another program, such as sqlite3, has the file "
      "open; or the owner through which this process publishes has ended: then publishing "
      "waits for the next.",
      "Stop that process, put both pipelines into one service, or use another file." },
    { "E0521", "not a spool, or a damaged one",
      "The file is a database of something else, or SQLite finds it damaged. It was not "
      "changed.",
      "Name another file. Of a damaged one keep a copy, with the -wal beside it; `sqlite3 FILE "
      ".recover` reads what can be read." },
    { "E0522", "a spool of a newer version",
      "A newer Laneway wrote the file in a form that this one does not know. It was not "
      "changed.",
      "Use the newer Laneway, or another file." },
    { "E0523", "a spool cannot be opened",
      "The folder is absent, or file or folder may not be written, or the system lacks what it "
      "needs. Beside the file lie its log (-wal), the owner's lock (-owner) and socket "
      "(-socket).",
      "Check path, owner and permissions of file and folder." },
    { "E0524", "a spool has no room",
      "The disk, a quota or file_bytes_max is full. What was confirmed is safe, what is "
      "handled "
      "is still settled; publishing waits and goes on by itself.",
      "Make room, or raise file_bytes_max." },
    { "E0525", "a spool's file cannot be read or written",
      "The system refused an operation on the file. What was confirmed is safe; it is tried "
      "again.",
      "Look at the disk and the system's log." },
    { "E0601", "a plug-in cannot be loaded",
      "The shared object that a handler names is not there, may not be read, is no shared "
      "object "
      "for this machine, or uses a function or library that is nowhere to be found. Nothing "
      "was "
      "started and no message was received.",
      "The message names the cause. A relative path begins at the folder of the configuration; "
      "`ldd FILE` shows which libraries are found; functions of Laneway are found only in a "
      "program that exports them." },
    { "E0602", "a handler cannot start",
      "The program ended, or did not answer, before its first message. The pipeline waits and "
      "the program is started again with growing pauses; no message is charged.",
      "Look at the last output of the program, which the message shows." },
    { "E0603", "a handler breaks the protocol",
      "The program answered an unknown id, or something that is no answer. It was started "
      "again.",
      "Answer every id once, with one JSON object per line; use standard error for other "
      "output." },
    { "E0604", "no such built-in handler",
      "Built-in handlers are for trials; this is none of them.",
      "Use noop, echo, sleep:5ms, io:5ms, cpu:500 or fail-n:3." },
    { "E0605", "a handler says that it is broken",
      "A program that is run once for each message exited with 64, 78, or a code that "
      "exit_codes "
      "calls broken. The pipeline waits, then one message tries again; no message is charged.",
      "Look at the last output of the program, which the message shows; if it only means that "
      "message, give the code another meaning in exit_codes." },
    { "E0606", "a handler cannot run like this",
      "Handler and engine do not fit, or what the engine needs is missing.",
      "The message says what is needed." },
    { "E0607", "a plug-in has no such handler",
      "The shared object was loaded, but it exports no handler under that name: there is no "
      "such "
      "symbol, it is a function or a variable of another kind, or the handler has no function.",
      "Export it with LW_HANDLER(NAME) of laneway/handler.h, and name it by `symbol` unless it "
      "is "
      "called lw_handler." },
    { "E0608", "a plug-in was built for another version",
      "The number of the interface that the plug-in was built for is not that of this Laneway. "
      "None of its functions was called.",
      "Build the plug-in again with the headers of the Laneway that loads it." },
    { "E0609", "a plug-in refused to start",
      "Its open function said that it cannot work, in the words of the message. Nothing was "
      "started and no message was received.",
      "Look at what the message names, usually one of the handler's `options`." },
    { "E0610", "a handler got too few threads",
      "The system did not let Laneway start as many threads as the handler asks for.",
      "Lower `threads`, or raise the limit of the system." },
    { "E0611", "a limit of a handler cannot be set",
      "nofile or user could not be set for the handler's program, or its use of memory and "
      "processor time cannot be watched. It was tried before the first message.",
      "The message says what the system answered. Only root (or CAP_SETUID, CAP_SETGID and "
      "CAP_KILL) may start and end programs of another user; nofile cannot be above our own "
      "hard limit." },
    { "E0620", "the service of a handler cannot be reached",
      "No connection could be made, or TLS failed. The pipeline waits; a connection is tried "
      "after 1 s, then twice as long each time, 30 s at most. No message is charged.",
      "Look whether the service runs and listens at the address; the message has the reason." },
    { "E0621", "the service of a handler does not speak HTTP",
      "What answered at the address is no HTTP, and never was. The pipeline waits as for "
      "E0620; "
      "no message is charged.",
      "Check the port; write https:// if the service speaks TLS." },
    { "E0622", "the service of a handler asked for a pause",
      "It answered 429 or 503 with Retry-After. All its pipelines wait that long, at most "
      "max_hold; no message is charged.",
      "Nothing, unless it happens often; then lower `connections`." },
    { "E0623", "the token of a handler cannot be used",
      "The file or variable that auth.token names cannot be read, is empty, or holds something "
      "else than a token. While the service runs, the last good token stays in force.",
      "Correct the file; it is read again by itself." },
    { "E0631", "the zygote of a handler was killed",
      "Engine processes forks its workers from a small process of its own, which somebody "
      "killed. "
      "No worker can be replaced any more, so the service finishes what its workers hold and "
      "ends "
      "with exit code 75; nothing is lost.",
      "Start the service again, and look for who killed it: memory limits, the system's log." },
    { "E0632", "a program of Laneway is missing",
      "A helper program that belongs to the installation is not where the command and the "
      "library "
      "look for it, or not safe to run.",
      "Install Laneway whole: its helper programs are in libexec/laneway." },
    { "E0633", "functions of the program cannot run in processes",
      "lw_processes_init forks a process from the program, which is safe only while it has one "
      "thread; or the system refused the process.",
      "Call it as the first thing in main, before anything that starts threads." },
    { "E0701", "no memory for a partition",
      "The book of offsets of a newly assigned partition could not be made.",
      "Give the process more memory, or lower max_uncommitted." },
    { "E0702", "not at this time",
      "A function of the library was called when it is not allowed, such as subscribing after "
      "run.",
      "Call it earlier." },
    { "E0710", "stopped by policy",
      "on_error, on_exhausted or on_undecodable said stop. The message stays at "
      "the "
      "broker. Exit code 79.",
      "Look at the reason in the log, mend the handler, start again." },
    { "E0801", "no control socket",
      "The unix socket that status, explain, pause, resume and drain use could not be made.",
      "Set service.control to a path in a folder that the process may write to." },
    { "E0803", "no running service was found",
      "No socket was given and none of the usual places has one that answers, or several have.",
      "Give --url unix:PATH or set LANEWAY_URL; the service logs its path when it is ready." },
    { "W0301", "nobody here reads the retry topic",
      "Copies for a later retry are put into a topic that no pipeline of this file reads.",
      "Add it to the topics of a pipeline; or say external: true when another service reads "
      "it; "
      "or set service.retry_warnings." },
    { "W0302", "a variable sets nothing",
      "A variable that begins with LANEWAY_ fits no option. Such a mistake would otherwise be "
      "invisible.",
      "Correct the name: LANEWAY_, then the path in capitals with __ between its parts." },
    { "W0303", "messages may be dropped",
      "With dead_letter: none a message that cannot be handled is logged, counted and dropped.",
      "Give a dead-letter topic, or say on_exhausted: hold or stop." },
    { "W0304", "workers and slots do not fit",
      "Workers times window is how many messages a program can hold; slots are how many run at "
      "once. If one is far from the other, part of it is never used.",
      "Bring workers x window near service.concurrency." },
    { "W0305", "large windows make priority coarse",
      "Messages that are already held here are chosen by priority, but those that wait at the "
      "broker behind them are not seen yet.",
      "Use profile adaptive or priority." },
    { "W0306", "an attempt may outlast the drain",
      "At a stop, an attempt that runs longer than service.drain_timeout is given back and "
      "will "
      "run again.",
      "Raise drain_timeout, or lower the handler's timeout." },
    { "W0307", "redeliver means in place here",
      "Kafka (and the memory broker in its usual mode) cannot take one message back, so it is "
      "run "
      "again in place.",
      "Say on_error: retry, which is the same and says so." },
    { "W0308", "an option has no effect",
      "The option is known, but nothing here makes use of it.", "Leave it out." },
    { "W0309", "an entry is not used", "No pipeline names this broker or handler.",
      "Remove it, or use it." },
    { "W0310", "replies are read as messages",
      "The reply topic is read by a pipeline of this file.",
      "That may be what you want (a chain of pipelines); otherwise choose another topic." },
    { "W0312", "a dead-letter topic does not exist",
      "The topic is not at the broker, and the broker does not create topics.",
      "`laneway topics create FILE` makes it." },
    { "W0313", "a retry topic has too few partitions",
      "A retry tier needs as many partitions as its source. Copies of the others wait in "
      "place.",
      "Give it as many partitions; `laneway topics plan FILE` shows how many." },
    { "W0314", "a topic does not exist",
      "A topic that is read, retried to or replied to is not at the broker. Laneway waits for "
      "it; a Pulsar broker makes it on first use where that is allowed.",
      "Make it: `laneway topics create FILE`, with --all for consumed and reply topics." },
    { "W0315", "a topic cannot be looked up",
      "The broker answered, but not about this topic; often the right to describe it is "
      "missing.",
      "Look at the reason in the message." },
    { "W0316", "the retry topic is read without its delays",
      "The broker keeps delays for shared and key_shared subscriptions only. On others a copy "
      "in the retry topic is delivered at once.",
      "Read the retry topic in a pipeline with consumer.type: shared, or set "
      "service.retry_warnings." },
    { "W0317", "keys stay at one member, but run side by side",
      "A key_shared subscription gives all messages of a key to one member. Without ordering: "
      "key its handlers for one key still run at the same time.",
      "Write ordering: key, or ordering: none where that is meant." },
    { "W0318", "a token goes over the network unprotected",
      "A handler has auth.token and an address with http:// that is not this computer.",
      "Write https:// if the service speaks TLS." },
    { "W0701", "a message is retried", "A handler asked for a retry, or failed.",
      "Nothing, unless it happens often." },
    { "W0702", "a message was dead-lettered",
      "A message could not be handled and was put into the dead-letter topic with its reason.",
      "Look at the reason, mend the cause, and send the dead letters back." },
    { "W0703", "a handler prints to standard output",
      "Lines that are no JSON objects were taken as the program's output.",
      "Use standard error, or LANEWAY_FD=3 and keep standard output." },
    { "W0704", "an answer came late",
      "A handler answered after its time was over or its partition was gone.",
      "Raise the timeout, or make the handler faster." },
};

const struct lw_catalogue_entry *
lw_catalogue_entries(size_t *ret_count)
{
    *ret_count = sizeof(entries) / sizeof(entries[0]);
    return entries;
}

const struct lw_catalogue_entry *
lw_catalogue_find(const char *code)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (strcasecmp(entries[i].code, code) == 0) {
            return &entries[i];
        }
    }
    return NULL;
}

const char *
lw_catalogue_nearest(const char *code)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        size_t distance = 0;
        if (lw_option_is_near(code, entries[i].code, &distance) && distance < best_distance) {
            best = entries[i].code;
            best_distance = distance;
        }
    }
    return best;
}
