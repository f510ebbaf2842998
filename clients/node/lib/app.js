// SPDX-License-Identifier: Apache-2.0
//
// The handlers of a program, and running the one that the service asks for. Whatever goes wrong
// before `ready` ends the program with a line on standard error: the service then shows that line,
// holds the pipeline, and charges no message.
'use strict';

const fs = require('node:fs');

const { Frames, Lines, ProtocolError } = require('./codec');
const { Session, Writer } = require('./session');

const PROTOCOL = 1;
const EX_USAGE = 64;
const EX_CONFIG = 78;
const CODECS = { lines: Lines, frames: Frames };

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

class App {
  constructor() {
    this._handlers = new Map();
    this._startHooks = [];
    this._stopHooks = [];
    this._session = undefined;
  }

  // -- Registering -------------------------------------------------------------------------------

  handler(...words) {
    const run = words.pop();
    const name = typeof words[0] === 'string' ? words.shift() : undefined;
    const { batch = false, concurrent = true, retryOn = [], deadOn = [] } = words[0] ?? {};
    if (typeof run !== 'function') throw new TypeError('a handler is a function');
    for (const kind of [deadOn, retryOn].flat()) { // at the first error it would be too late
      if (typeof kind !== 'function') throw new TypeError(`${String(kind)} is no class of errors`);
    }
    if (this._handlers.has(name)) throw new Error(`there is a handler ${name} already`);
    this._handlers.set(name, {
      batch, concurrent, deadOn: [deadOn].flat(), retryOn: [retryOn].flat(), run,
    });
    return this;
  }

  onStart(hook) {
    this._startHooks.push(hook);
    return this;
  }

  onStop(hook) {
    this._stopHooks.push(hook);
    return this;
  }

  // -- While it runs -----------------------------------------------------------------------------

  log(level, text, fields) {
    if (this._session) this._session.log(level, text, fields);
    else process.stderr.write(`${level} ${text} ${fields ? JSON.stringify(fields) : ''}\n`);
  }

  /** Speaks with the service until it closes the input, then ends the process. */
  async run() {
    try {
      if (process.stdin.isTTY) {
        throw new Refused(EX_USAGE, 'this is a handler: `laneway run` starts it and writes to its ' +
          'standard input');
      }
      checkProtocol();
      const writer = new Writer(answersFd());
      await this._converse(writer);
      process.exit(0);
    } catch (why) {
      // Errors of others may have a `status`, too, such as that of an HTTP answer.
      const isOurs = why instanceof Refused || why instanceof ProtocolError;
      fs.writeSync(2, `laneway: ${isOurs ? why.message : (why?.stack ?? why)}\n`);
      process.exit(isOurs ? why.status : 1);
    }
  }

  choose(name) {
    const handler = this._handlers.get(name) ?? this._handlers.get(undefined);
    if (!handler) {
      const known = [...this._handlers.keys()].join(', ') || 'none';
      throw new Refused(EX_CONFIG, `no handler is called "${name}"; this program has: ${known}`);
    }
    return handler;
  }

  async _converse(writer) {
    const source = new Source();
    const hello = await source.first();
    const handler = this.choose(hello.handler);
    const session = new Session(source.codec, writer, handler);
    session.hasBatches ||= hello.batch !== undefined;
    this._session = session;
    process.on('exit', () => session.flush()); // also by process.exit() in a handler, or a crash
    for (const hook of this._startHooks) await hook();
    const ready = { protocol: PROTOCOL };
    if (handler.concurrent) ready.concurrent = true;
    if (hello.batch !== undefined) ready.batch = true;
    session.say({ ready });
    await source.rest((requests) => session.take(requests));
    while (!session.isIdle) {
      await new Promise((resolve) => {
        session.onIdle = resolve;
      });
    }
    session.flush();
    for (const hook of this._stopHooks) await hook();
  }
}

/** Requests from standard input. */
class Source {
  constructor() {
    this.codec = undefined;
    this._requests = [];
    this._onRequests = undefined;
    this._ended = new Promise((resolve, reject) => {
      this._resolve = resolve;
      this._reject = reject;
    });
    this._ended.catch(() => {}); // it is looked at later
  }

  /** The fields of the hello. */
  async first() {
    const greeted = new Promise((resolve) => {
      this._onRequests = (requests) => {
        this._requests.push(...requests);
        if (this._requests.length > 0) resolve();
      };
    });
    process.stdin.on('data', (data) => this._take(data));
    process.stdin.on('end', () => this._end());
    process.stdin.on('error', this._reject);
    await Promise.race([greeted, this._ended]);
    const hello = this._requests.shift()?.hello;
    if (hello === undefined) {
      throw new Refused(EX_USAGE, 'the service did not begin with hello');
    }
    if ((hello.protocol ?? PROTOCOL) !== PROTOCOL) {
      throw new ProtocolError(`the service speaks protocol ${hello.protocol}, this client ${PROTOCOL}`);
    }
    return hello;
  }

  /** Gives all further requests; returns at the end of input. */
  async rest(onRequests) {
    this._onRequests = onRequests;
    onRequests(this._requests);
    await this._ended;
  }

  _take(data) {
    try {
      this.codec ??= codecFor(data);
      this._onRequests(this.codec.feed(data));
    } catch (why) {
      process.stdin.pause();
      this._reject(why);
    }
  }

  _end() {
    if (this.codec?.hasRest()) {
      this._reject(new ProtocolError('the service stopped in the middle of a message'));
    } else {
      this._resolve();
    }
  }
}

/** Under `once` there is no conversation: the status must say that no message is to blame. */
function checkProtocol() {
  const name = process.env.LANEWAY_PROTOCOL || 'lines';
  if (!Object.hasOwn(CODECS, name)) {
    throw new Refused(EX_CONFIG, `this client speaks ${Object.keys(CODECS).join(' and ')}, not ` +
      `${name}: say \`protocol: lines\` in the configuration of the handler`);
  }
}

function codecFor(data) {
  return new CODECS[process.env.LANEWAY_PROTOCOL || (data[0] === 0 ? 'frames' : 'lines')]();
}

function answersFd() {
  const fd = Number(process.env.LANEWAY_FD || NaN);
  try {
    fs.fstatSync(fd);
    return fd;
  } catch {
    return 1; // started by hand
  }
}

module.exports = { App };
