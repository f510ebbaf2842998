// SPDX-License-Identifier: Apache-2.0
//
// The conversation with a service: writing answers, and what a handler's result becomes. Answers
// that are given in one turn of the event loop are written at once. Writes are synchronous: the
// service always reads, and what was answered is not lost when the process dies.
'use strict';

const fs = require('node:fs');

const { TooLargeError, requireFit } = require('./codec');
const { Message, plain } = require('./message');
const { NULL, Verdict } = require('./verdicts');

const REASON_CHARACTERS_MAX = 512;
const LOG_CHARACTERS_MAX = 65536; // the service keeps far less of a line
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
      process.stdout.on('error', () => {
        this._isBroken = true;
      });
      process.stdout.write = process.stderr.write.bind(process.stderr);
    }
  }

  write(data) {
    if (this._toStdout) {
      if (!this._isBroken) this._toStdout(data);
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
    this.hasBatches = handler.batch;
    this._pending = [];
    this._waiting = []; // requests, when they run one after the other
    this._isRunning = false; // one of them, or about to run the next one
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
      if (!this._isRunning) this._runWaiting();
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
    return this._active === 0 && this._waiting.length === 0 && !this._isRunning;
  }

  async _runWaiting() {
    this._isRunning = true;
    while (this._waiting.length > 0) {
      await this._run(this._waiting.shift());
      this.flush();
    }
    this._isRunning = false;
    if (this.isIdle) this.onIdle();
  }

  /** Runs the handler; a promise only if the handler gave one. */
  _run(fields) {
    if (this.hasBatches) return this._runBatch(fields);
    const message = new Message(fields, this);
    let reply;
    try {
      reply = this._handler.run(message);
    } catch (why) {
      this._finish([message], this._encode(fields, this.blame(why)));
      return undefined;
    }
    if (typeof reply?.then !== 'function') {
      this._finish([message], this._done(message, reply));
      return undefined;
    }
    return this._await(message, reply);
  }

  async _await(message, promise) {
    this._active++;
    let answer;
    try {
      const reply = await promise;
      answer = this._done(message, reply);
    } catch (why) {
      answer = this._encode(message._fields, this.blame(why));
    }
    this._active--;
    this._finish([message], answer);
    if (this.isIdle) this.onIdle();
  }

  /** Members have the id and the time of their batch. */
  async _runBatch(fields) {
    this._active++;
    const { id, deadline_ms: deadlineMs, messages: members } = fields;
    const messages = members
      ? members.map((member) => new Message({ ...member, id, deadline_ms: deadlineMs }, this))
      : [new Message(fields, this)];
    let answers;
    try {
      answers = this._handler.batch
        ? this._judgeAll(messages, await this._handler.run(messages))
        : await this._runMembers(messages);
    } catch (why) {
      answers = this.blame(why);
    }
    this._active--;
    this._finish(messages, this._encodeBatch(fields, answers));
    if (this.isIdle) this.onIdle();
  }

  /** A handler of one message: at once, or one after the other. */
  async _runMembers(messages) {
    const run = async (message) => {
      let reply;
      try {
        reply = await this._handler.run(message);
      } catch (why) {
        return this.blame(why);
      }
      return this._judgeMember(message, reply);
    };
    if (this._handler.concurrent) return Promise.all(messages.map(run));
    const answers = [];
    for (const message of messages) answers.push(await run(message));
    return answers;
  }

  _finish(messages, answer) {
    for (const message of messages) message._isAnswered = true;
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

  _done(message, reply) {
    if ((reply === undefined || reply === null) && message._outputs === undefined) {
      return this._codec.ok(message._fields.id);
    }
    return this._encode(message._fields, this._judgeMember(message, reply));
  }

  /** What is wrong with a result is an error, never one of the classes that a handler names. */
  _judgeMember(message, reply) {
    try {
      return this.judge(message, reply);
    } catch (why) {
      return this.fault(why);
    }
  }

  /** What a handler's return value means. */
  judge(message, reply) {
    if (reply instanceof Verdict) return this.blame(reply);
    const answer = { result: 'ok', outputs: message._outputs };
    if (reply === NULL) answer.reply = null;
    else if (reply !== undefined && reply !== null) answer.reply = plain(reply);
    return answer;
  }

  /** What an exception of a handler means. */
  blame(why) {
    if (why instanceof Verdict) {
      return { result: why.result, reason: kept(why.reason), delay: why.delay, code: why.code };
    }
    const { retryOn, deadOn } = this._handler;
    if (deadOn.some((kind) => why instanceof kind)) return { result: 'dead', reason: reasonOf(why) };
    if (retryOn.some((kind) => why instanceof kind)) return { result: 'retry', reason: reasonOf(why) };
    return this.fault(why);
  }

  fault(why) {
    const reason = reasonOf(why);
    process.stderr.write(`${stackOf(why) ?? reason}\n`);
    return { result: 'error', reason };
  }

  /** What cannot be encoded, or is too large, is an error of its message. */
  _encode(fields, answer) {
    try {
      return requireFit(fields, this._codec.answer(fields.id, answer));
    } catch (why) {
      return this._codec.answer(fields.id, this.fault(why));
    }
  }

  _judgeAll(messages, replies) {
    if (replies instanceof Verdict) return this.blame(replies);
    const list = replies ?? messages.map(() => undefined);
    if (!Array.isArray(list)) {
      return this.fault(new TypeError('a handler of batches returns nothing, a verdict for all, or ' +
        `an array with a result for each message, not ${typeof replies}`));
    }
    if (list.length > messages.length) { // of too few the service says so, and runs the rest again
      return this.fault(new RangeError(`${list.length} results for ${messages.length} messages`));
    }
    return messages.slice(0, list.length).map((message, i) => this._judgeMember(message, list[i]));
  }

  _encodeBatch(fields, answers) {
    if (!Array.isArray(answers)) return this._encode(fields, answers);
    if (!fields.messages) {
      return this._encode(fields, answers[0] ?? { result: 'error', reason: 'no result' });
    }
    try {
      return requireFit(fields, this._codec.results(fields.id, answers));
    } catch {
      return this._encodeEach(fields, answers.map((answer) => this._encodable(fields, answer)));
    }
  }

  /** Results that are too large only together are an error of all: each comes again alone. */
  _encodeEach(fields, answers) {
    try {
      return requireFit(fields, this._codec.results(fields.id, answers));
    } catch (why) {
      if (!(why instanceof TooLargeError)) throw why;
      return this._codec.answer(fields.id, this.fault(why));
    }
  }

  _encodable(fields, answer) {
    try {
      requireFit(fields, this._codec.answer(0, answer));
      return answer;
    } catch (why) {
      return this.fault(why);
    }
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
    const line = [text, ...words].join(' ').slice(0, LOG_CHARACTERS_MAX);
    this.say({ log: level, msg: cleaned(line) });
  }
}

/** Of a reason what is kept of it. */
function kept(reason) {
  return cleaned(textOf(reason).slice(0, REASON_CHARACTERS_MAX));
}

function reasonOf(why) {
  return kept(why instanceof Error ? `${textOf(why.name)}: ${textOf(why.message)}` : why);
}

/** It is put together when it is asked for, out of what the error holds. */
function stackOf(why) {
  try {
    return why instanceof Error ? String(why.stack) : undefined;
  } catch {
    return undefined;
  }
}

/** Anything may be thrown, also what has no text. */
function textOf(value) {
  try {
    return String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** Half characters are replaced. */
function cleaned(text) {
  return Buffer.from(text).toString();
}

module.exports = { Session, Writer };
