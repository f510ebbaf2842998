// SPDX-License-Identifier: Apache-2.0
//
// The conversation with a service: writing answers, and what a handler's result becomes. Answers
// that are given in one turn of the event loop are written at once. Writes are synchronous: the
// service always reads, and what was answered is not lost when the process dies.
'use strict';

const fs = require('node:fs');

const { Message, plain } = require('./message');
const { NULL, Verdict } = require('./verdicts');

const REASON_CHARACTERS_MAX = 512;
const HOLD_MS = 2;
const LEVELS = ['error', 'warn', 'info', 'debug', 'trace'];

/** Writes bytes to a descriptor. A service that is gone is no error. */
class Writer {
  constructor(fd) {
    this._fd = fd;
    this._isBroken = false;
    this._toStdout = undefined;
    if (fd === 1) {
      // Prints must not come between answers: they go to standard error from now on.
      this._toStdout = process.stdout.write.bind(process.stdout);
      process.stdout.write = process.stderr.write.bind(process.stderr);
    }
  }

  write(data) {
    if (this._toStdout) {
      this._toStdout(data);
      return;
    }
    try {
      for (let at = 0; at < data.length && !this._isBroken; ) {
        at += fs.writeSync(this._fd, data, at);
      }
    } catch (why) {
      if (why.code !== 'EPIPE') throw why;
      this._isBroken = true;
    }
  }
}

class Session {
  constructor(codec, writer, handler) {
    this._codec = codec;
    this._writer = writer;
    this._handler = handler;
    this._pending = [];
    this._waiting = []; // requests, when they run one after the other
    this._active = 0;
    this._firstPending = 0;
    this._flushLater = () => this.flush();
    this._immediate = undefined;
    this.onIdle = () => {};
  }

  // -- Requests ----------------------------------------------------------------------------------

  take(requests) {
    if (!this._handler.concurrent) {
      this._waiting.push(...requests);
      if (this._active === 0) this._runWaiting();
      return;
    }
    for (const fields of requests) {
      this._run(fields);
      if (this._pending.length > 0 && performance.now() - this._firstPending > HOLD_MS) {
        this.flush();
      }
    }
  }

  get isIdle() {
    return this._active === 0 && this._waiting.length === 0;
  }

  async _runWaiting() {
    while (this._waiting.length > 0) {
      await this._run(this._waiting.shift());
      this.flush();
    }
    if (this.isIdle) this.onIdle();
  }

  /** Runs the handler; a promise only if the handler gave one. */
  _run(fields) {
    const message = new Message(fields, this);
    let reply;
    try {
      reply = this._handler.run(message);
    } catch (why) {
      this._finish(message, this.failed(message, why));
      return undefined;
    }
    if (typeof reply?.then !== 'function') {
      this._finish(message, this.done(message, reply));
      return undefined;
    }
    return this._await(message, reply);
  }

  async _await(message, promise) {
    this._active++;
    let answer;
    try {
      answer = this.done(message, await promise);
    } catch (why) {
      answer = this.failed(message, why);
    }
    this._active--;
    this._finish(message, answer);
    if (this.isIdle) this.onIdle();
  }

  _finish(message, answer) {
    message._isAnswered = true;
    if (this._pending.push(answer) > 1) return;
    this._firstPending = performance.now();
    this._immediate = setImmediate(this._flushLater);
  }

  flush() {
    if (this._pending.length === 0) return;
    clearImmediate(this._immediate);
    const pending = this._pending;
    this._pending = [];
    this._writer.write(pending.length === 1 ? pending[0] : Buffer.concat(pending));
  }

  // -- Answers -----------------------------------------------------------------------------------

  done(message, reply) {
    const id = message._fields.id;
    if ((reply === undefined || reply === null) && message._outputs === undefined) {
      return this._codec.ok(id);
    }
    if (reply instanceof Verdict) return this._verdict(message, reply);
    try {
      const answer = { result: 'ok', outputs: message._outputs };
      if (reply === NULL) answer.reply = null;
      else if (reply !== undefined && reply !== null) answer.reply = plain(reply);
      return this._codec.answer(id, answer);
    } catch (why) {
      return this.failed(message, why);
    }
  }

  failed(message, why) {
    if (why instanceof Verdict) return this._verdict(message, why);
    const text = why instanceof Error ? `${why.name}: ${why.message}` : String(why);
    const { retryOn, deadOn } = this._handler;
    if (deadOn.some((kind) => why instanceof kind)) {
      return this._answer(message, { result: 'dead', reason: text });
    }
    if (retryOn.some((kind) => why instanceof kind)) {
      return this._answer(message, { result: 'retry', reason: text });
    }
    process.stderr.write(`${why instanceof Error ? why.stack : text}\n`);
    return this._answer(message, { result: 'error', reason: text });
  }

  _verdict(message, { result, reason, delay, code }) {
    return this._answer(message, { result, reason, delay, code });
  }

  _answer(message, answer) {
    answer.reason = cleaned(answer.reason.slice(0, REASON_CHARACTERS_MAX));
    return this._codec.answer(message._fields.id, answer);
  }

  // -- Beside answers ----------------------------------------------------------------------------

  say(header) {
    this.flush();
    this._writer.write(this._codec.say(header));
  }

  log(level, text, fields = {}) {
    if (!LEVELS.includes(level)) {
      throw new RangeError(`a level is one of ${LEVELS.join(', ')}, not ${level}`);
    }
    const words = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
    this.say({ log: level, msg: cleaned([text, ...words].join(' ')) });
  }
}

/** Half characters are replaced. */
function cleaned(text) {
  return Buffer.from(text).toString();
}

module.exports = { Session, Writer };
