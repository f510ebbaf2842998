// SPDX-License-Identifier: Apache-2.0
//
// Bytes to requests and answers to bytes: the lines protocol and the frames protocol, whose norm
// is docs/protocol.md of Laneway. Both codecs take bytes as they arrive and give out the requests
// that are whole.
'use strict';

const { asText, requireWellFormed } = require('./message');

const LENGTH_BYTES = 4;
const HEADER_BYTES_MAX = 0xffffff;
// What the service takes for one answer, beside the size of its request. A longer one would break
// the protocol, and end the program with all that it holds.
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const NEWLINE = 10;

class ProtocolError extends Error {
  status = 76; // EX_PROTOCOL
}

/** An answer that the service would not take. */
class TooLargeError extends RangeError {
  name = 'RangeError';
}

/** The answer, if the service takes it; the size of the request is only asked for if need be. */
function requireFit(request, answer) {
  if (answer.length > ANSWER_BYTES_MAX) {
    const messages = request.messages ?? [request];
    const most = messages.reduce((sum, message) => sum + contentBytes(message), ANSWER_BYTES_MAX);
    if (answer.length > most) {
      throw new TooLargeError(`an answer of ${answer.length} bytes (reply and outputs together) is ` +
        `too large: at most 16 MiB more than its request are allowed, here ${most}`);
    }
  }
  return answer;
}

/** As many bytes as its content had at least on its way. */
function contentBytes(message) {
  let size = 0;
  for (const name of ['key', 'value', 'key_b64', 'value_b64']) {
    const content = message[name];
    if (typeof content === 'string') size += Buffer.byteLength(JSON.stringify(content));
    else if (content !== undefined && content !== null) size += content.length;
  }
  return size;
}

/** JSON of it. Lone surrogates, which JSON.stringify would escape, are refused. */
function encode(header) {
  const text = JSON.stringify(header);
  if (text.includes('\\ud')) checkAll(header);
  return text;
}

function checkAll(value) {
  if (typeof value === 'string') {
    requireWellFormed(value);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      requireWellFormed(name);
      checkAll(item);
    }
  }
}

function put(header, name, value) {
  const text = typeof value === 'string' ? value : asText(value);
  if (text === undefined) header[`${name}_b64`] = value.toString('base64');
  else header[name] = text;
}

/** An answer: {result, reason, delay, code, reply, outputs}; a reply of null publishes a null. */
function headerOf(answer) {
  const header = { result: answer.result };
  if (answer.reason) header.reason = answer.reason;
  if (answer.delay !== undefined) header.delay = answer.delay;
  if (answer.code !== undefined) header.code = answer.code;
  if (answer.reply === null) header.reply = null;
  return header;
}

function parse(text) {
  let fields;
  try {
    fields = JSON.parse(text);
  } catch (why) {
    throw new ProtocolError(`what the service wrote is no JSON: ${why.message}`);
  }
  if (typeof fields !== 'object' || fields === null) {
    throw new ProtocolError('what the service wrote is no JSON object');
  }
  return fields;
}

class Lines {
  constructor() {
    this._parts = [];
  }

  /** Takes what was read and gives the requests that are whole. */
  feed(data) {
    const end = data.lastIndexOf(NEWLINE) + 1;
    if (end === 0) {
      this._parts.push(data);
      return [];
    }
    let whole = data.subarray(0, end);
    if (this._parts.length > 0) whole = Buffer.concat([...this._parts, whole]);
    this._parts = end < data.length ? [data.subarray(end)] : [];
    const requests = [];
    for (const line of whole.toString().split('\n')) {
      if (line !== '') requests.push(parse(line));
    }
    return requests;
  }

  hasRest() {
    return this._parts.length > 0;
  }

  say(header) {
    return Buffer.from(`${encode(header)}\n`);
  }

  ok(id) {
    return Buffer.from(`{"id":${id},"result":"ok"}\n`);
  }

  answer(id, answer) {
    return this.say({ id, ...written(answer) });
  }

  /** One for each message of a batch. */
  results(id, answers) {
    return this.say({ id, results: answers.map((answer) => short(written(answer))) });
  }
}

/** Of a result that is nothing but a word, the word. */
function short(header) {
  const names = Object.keys(header).filter((name) => header[name] !== undefined);
  return names.length === 1 ? header.result : header;
}

function written(answer) {
  const header = headerOf(answer);
  if (answer.reply !== undefined && answer.reply !== null) put(header, 'reply', answer.reply);
  if (answer.outputs) header.outputs = answer.outputs.map(listed);
  return header;
}

function listed({ key, value, ...output }) {
  if (key !== undefined) put(output, 'key', key);
  if (value !== undefined) put(output, 'value', value);
  return output;
}

class Frames {
  constructor() {
    this._parts = [];
    this._held = 0;
    this._need = LENGTH_BYTES;
  }

  /** Takes what was read and gives the requests that are whole. */
  feed(data) {
    this._parts.push(data);
    this._held += data.length;
    if (this._held < this._need) return [];
    const whole = this._parts.length === 1 ? data : Buffer.concat(this._parts);
    const requests = [];
    let at = 0;
    for (;;) {
      const [fields, size] = take(whole.subarray(at));
      if (fields === undefined) {
        this._need = size;
        break;
      }
      requests.push(fields);
      at += size;
    }
    this._held = whole.length - at;
    this._parts = this._held > 0 ? [whole.subarray(at)] : [];
    return requests;
  }

  hasRest() {
    return this._held > 0;
  }

  say(header) {
    return framed(encode(header), []);
  }

  ok(id) {
    return framed(`{"id":${id},"result":"ok"}`, []);
  }

  answer(id, answer) {
    const parts = [];
    const header = { id, ...framedAnswer(answer, parts) };
    return framed(encode(header), parts);
  }

  /** One for each message of a batch. */
  results(id, answers) {
    const parts = [];
    const header = { id, results: answers.map((answer) => short(framedAnswer(answer, parts))) };
    return framed(encode(header), parts);
  }
}

function framedAnswer(answer, parts) {
  const header = headerOf(answer);
  if (answer.reply !== undefined && answer.reply !== null) {
    measure(header, 'reply', answer.reply, parts);
  }
  if (answer.outputs) {
    header.outputs = answer.outputs.map(({ key, value, ...output }) => {
      if (key !== undefined) measure(output, 'key', key, parts);
      if (value !== undefined) measure(output, 'value', value, parts);
      return output;
    });
  }
  return header;
}

/** [a request, its size], or [undefined, what must be there before there can be one]. */
function take(view) {
  if (view.length < LENGTH_BYTES) return [undefined, LENGTH_BYTES];
  const length = view.readUInt32BE(0);
  if (length > HEADER_BYTES_MAX) {
    throw new ProtocolError('what the service wrote is not the frames protocol');
  }
  let at = LENGTH_BYTES + length;
  if (view.length < at) return [undefined, at];
  const fields = parse(view.toString('utf8', LENGTH_BYTES, at));
  const messages = fields.messages ?? [fields];
  let size = at;
  for (const message of messages) size += (message.key_len ?? 0) + (message.value_len ?? 0);
  if (view.length < size) return [undefined, size];
  for (const message of messages) {
    if (message.key_len !== undefined) message.key = view.subarray(at, at += message.key_len);
    if (message.value_len !== undefined) message.value = view.subarray(at, at += message.value_len);
  }
  return [fields, size];
}

function measure(header, name, value, parts) {
  const body = typeof value === 'string' ? Buffer.from(value) : value;
  header[`${name}_len`] = body.length;
  parts.push(body);
}

function framed(text, parts) {
  const header = Buffer.from(text);
  if (header.length > HEADER_BYTES_MAX) {
    throw new TooLargeError('the header of an answer is larger than 16 MiB');
  }
  const length = Buffer.allocUnsafe(LENGTH_BYTES);
  length.writeUInt32BE(header.length);
  return Buffer.concat([length, header, ...parts]);
}

module.exports = { Frames, Lines, ProtocolError, TooLargeError, requireFit };
