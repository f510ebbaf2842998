// SPDX-License-Identifier: Apache-2.0
//
// A message as a handler sees it. It holds the fields as the service sent them and makes of them
// what is asked for, so that a handler pays for nothing that it does not use. With `lines` the
// content is text in `value` or base64 in `value_b64`; with `frames` it is a Buffer in `value`.
'use strict';

const { NULL, readDuration } = require('./verdicts');

function contentOf(fields, name) {
  const value = fields[name];
  if (value === undefined || value === null) {
    const coded = fields[`${name}_b64`];
    return coded === undefined ? null : Buffer.from(coded, 'base64');
  }
  return typeof value === 'string' ? Buffer.from(value) : value;
}

function textOf(fields, name) {
  const value = fields[name];
  if (typeof value === 'string') return value;
  const content = contentOf(fields, name);
  return content === null ? null : content.toString();
}

/** The text of UTF-8 bytes; undefined if they are none, null if there are none. */
function asText(bytes) {
  if (bytes === null) return null;
  const text = bytes.toString();
  return text.includes('\ufffd') && !Buffer.from(text).equals(bytes) ? undefined : text;
}

function timeOf(text) {
  return text === undefined ? null : new Date(text);
}

/** Text or a Buffer, of all that may be published. */
function plain(value) {
  if (typeof value === 'string') {
    requireWellFormed(value);
    return value;
  }
  if (Buffer.isBuffer(value)) return value;
  if (ArrayBuffer.isView(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  // JSON of an Error is {}: whoever returns one means to throw it.
  const isObject = typeof value === 'object' && value !== null && !(value instanceof Error);
  const text = isObject ? JSON.stringify(value) : undefined;
  if (text === undefined) {
    const what = value instanceof Error ? `an error: ${value.message}` : typeof value;
    throw new TypeError(`a payload is text, bytes, an object or an array, not ${what}`);
  }
  return text;
}

function requireWellFormed(text) {
  if (text.isWellFormed ? !text.isWellFormed() : /\p{Surrogate}/u.test(text)) {
    throw new TypeError('a text holds half a character (a lone surrogate)');
  }
}

class Headers {
  constructor(fields) {
    this._texts = fields.headers || {};
    this._binary = fields.headers_b64 || {};
  }

  has(name) {
    return Object.hasOwn(this._texts, name) || Object.hasOwn(this._binary, name);
  }

  get(name) {
    const values = this.getAll(name);
    return values.length === 0 ? undefined : values[values.length - 1];
  }

  getAll(name) {
    const values = [];
    if (Object.hasOwn(this._texts, name)) values.push(...[this._texts[name]].flat());
    if (Object.hasOwn(this._binary, name)) {
      for (const coded of [this._binary[name]].flat()) values.push(Buffer.from(coded, 'base64'));
    }
    return values;
  }

  keys() {
    return [...new Set([...Object.keys(this._texts), ...Object.keys(this._binary)])];
  }

  *[Symbol.iterator]() {
    for (const name of this.keys()) yield [name, this.get(name)];
  }
}

class Message {
  constructor(fields, session) {
    this._fields = fields;
    this._session = session;
    this._began = performance.now();
    this._limit = fields.deadline_ms;
    this._outputs = undefined;
    this._isAnswered = false;
  }

  // -- Content -----------------------------------------------------------------------------------

  get value() {
    return contentOf(this._fields, 'value');
  }

  get text() {
    return textOf(this._fields, 'value') ?? '';
  }

  json() {
    const { value } = this._fields;
    const text = typeof value === 'string' ? value : asText(this.value);
    if (text === null) throw new SyntaxError('the message has no payload');
    if (text === undefined) throw new SyntaxError('the payload is no UTF-8');
    return JSON.parse(text);
  }

  get key() {
    return contentOf(this._fields, 'key');
  }

  get keyText() {
    return textOf(this._fields, 'key');
  }

  get orderingKey() {
    return contentOf(this._fields, 'ordering_key');
  }

  get headers() {
    return new Headers(this._fields);
  }

  // -- Where it is from --------------------------------------------------------------------------

  get messageId() {
    return this._fields.message_id;
  }

  get topic() {
    return this._fields.topic;
  }

  get partition() {
    return this._fields.partition;
  }

  get offset() {
    return this._fields.offset;
  }

  get subscription() {
    return this._fields.subscription;
  }

  get pipeline() {
    return this._fields.pipeline;
  }

  get timestamp() {
    return timeOf(this._fields.timestamp);
  }

  get eventTime() {
    return timeOf(this._fields.event_time);
  }

  // -- Attempts ----------------------------------------------------------------------------------

  get attempt() {
    return this._fields.attempt;
  }

  get retries() {
    return this._fields.retries;
  }

  get redeliveries() {
    return this._fields.redeliveries;
  }

  remaining() {
    if (this._limit === undefined) return null;
    return this._began + this._limit - performance.now();
  }

  extend(duration) {
    const ms = readDuration(duration);
    const left = this.remaining();
    if (this._isAnswered) return; // the service would take it for a broken conversation
    this._session.say({ id: this._fields.id, extend: `${ms}ms` });
    if (left !== null && left < ms) {
      this._began = performance.now();
      this._limit = ms;
    }
  }

  publish(topic, value, { key, headers, delay } = {}) {
    const output = { topic };
    if (key !== undefined && key !== null) output.key = plain(key);
    if (value !== undefined && value !== null && value !== NULL) output.value = plain(value);
    if (headers !== undefined) output.headers = { ...headers };
    if (delay !== undefined) output.delay = `${readDuration(delay)}ms`;
    (this._outputs ??= []).push(output);
  }
}

module.exports = { Headers, Message, asText, plain, requireWellFormed };
