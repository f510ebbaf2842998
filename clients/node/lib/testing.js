// SPDX-License-Identifier: Apache-2.0
//
// Calls a handler as a service would, without one: for unit tests of handlers. The message is
// encoded as the service encodes it, and the answer is read as the service reads it, so what
// cannot be sent fails here too.
'use strict';

const assert = require('node:assert');

const { Frames, Lines } = require('./codec');
const { Session } = require('./session');

const LENGTH_BYTES = 4;

/** Runs a handler of `app` on one message; resolves to what the service would read. */
async function call(app, value, options = {}) {
  const { handler, key, headers, protocol = 'lines', ...fields } = options;
  const request = requestOf(protocol, [{ value, key, headers }], fields, false);
  return (await callWith(app, handler, protocol, request))[0];
}

/**
 * Runs a handler on several messages at once; resolves to a result for each. One verdict for all
 * is given as that of each.
 */
async function callBatch(app, values, options = {}) {
  const { handler, protocol = 'lines', ...fields } = options;
  const request = requestOf(protocol, values.map((value) => ({ value })), fields, true);
  const results = await callWith(app, handler, protocol, request);
  return results.length > 1 ? results : values.map(() => results[0]);
}

async function callWith(app, name, protocol, request) {
  const codec = protocol === 'frames' ? new Frames() : new Lines();
  const written = [];
  const session = new Session(codec, { write: (data) => written.push(data) }, choose(app, name));
  const previous = app._session;
  app._session = session;
  try {
    const requests = codec.feed(request);
    session.hasBatches ||= requests[0].messages !== undefined;
    session.take(requests);
    while (!session.isIdle) {
      await new Promise((resolve) => {
        session.onIdle = resolve;
      });
    }
    session.flush();
  } finally {
    app._session = previous;
  }
  return resultsOf(protocol, Buffer.concat(written));
}

function choose(app, name) {
  if (name === undefined && app._handlers.size === 1) return [...app._handlers.values()][0];
  if (!app._handlers.has(name)) throw new Error(`no handler is called ${name}`);
  return app._handlers.get(name);
}

// -- What a service writes ---------------------------------------------------------------------

function requestOf(protocol, messages, fields, isBatch) {
  const parts = [];
  const members = messages.map((message, i) => memberOf(protocol, i, message, fields, parts));
  const header = isBatch ? { id: 1, messages: members } : { id: 1, ...members[0] };
  const text = Buffer.from(`${JSON.stringify(header)}\n`);
  if (protocol !== 'frames') return text;
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, ...parts]);
}

function memberOf(protocol, number, { value, key, headers = {} }, fields, parts) {
  const header = {
    message_id: `main/test/0/${number}`,
    topic: 'test',
    partition: 0,
    offset: number,
    subscription: 'test',
    pipeline: 'test',
    ...headerObjects(headers),
    timestamp: '2026-01-01T00:00:00.000Z',
    attempt: 1,
    retries: 0,
    redeliveries: 0,
    ...fields,
  };
  for (const [name, content] of [['key', key], ['value', value]]) {
    if (content === undefined || content === null) continue;
    const bytes = bytesOf(content);
    if (protocol === 'frames') {
      header[`${name}_len`] = bytes.length;
      parts.push(bytes);
    } else if (isText(bytes)) {
      header[name] = bytes.toString();
    } else {
      header[`${name}_b64`] = bytes.toString('base64');
    }
  }
  return header;
}

function bytesOf(content) {
  if (content instanceof Uint8Array) return Buffer.from(content);
  return Buffer.from(typeof content === 'string' ? content : JSON.stringify(content));
}

function isText(bytes) {
  return Buffer.from(bytes.toString()).equals(bytes);
}

function headerObjects(headers) {
  const texts = {};
  const coded = {};
  for (const [name, values] of Object.entries(headers)) {
    for (const value of Array.isArray(values) ? values : [values]) {
      const isBinary = value instanceof Uint8Array && !isText(Buffer.from(value));
      const text = value === null ? null : Buffer.from(value).toString(isBinary ? 'base64' : 'utf8');
      ((isBinary ? coded : texts)[name] ??= []).push(text);
    }
  }
  const objects = { headers: unlisted(texts) };
  if (Object.keys(coded).length > 0) objects.headers_b64 = unlisted(coded);
  return objects;
}

function unlisted(values) {
  const one = ([name, list]) => [name, list.length === 1 ? list[0] : list];
  return Object.fromEntries(Object.entries(values).map(one));
}

// -- What a service reads ----------------------------------------------------------------------

/** Splits what was written into [{header, tail}]. */
function unitsOf(protocol, data) {
  const units = [];
  while (data.length > 0) {
    let header;
    if (protocol === 'frames') {
      const at = LENGTH_BYTES + data.readUInt32BE(0);
      header = JSON.parse(data.toString('utf8', LENGTH_BYTES, at));
      data = data.subarray(at);
    } else {
      const at = data.indexOf(10) + 1;
      assert(at > 0, 'a line has no end');
      header = JSON.parse(data.toString('utf8', 0, at));
      data = data.subarray(at);
    }
    const size = [header, ...(header.results ?? [])]
      .flatMap((holder) => [holder, ...(holder.outputs ?? [])])
      .flatMap((holder) => [holder.key_len, holder.value_len, holder.reply_len])
      .reduce((sum, length) => sum + (length ?? 0), 0);
    assert(size <= data.length, 'a frame is cut short');
    units.push({ header, tail: data.subarray(0, size) });
    data = data.subarray(size);
  }
  return units;
}

/** One for each message, or one for all. */
function resultsOf(protocol, data) {
  const units = unitsOf(protocol, data);
  const answers = units.filter(({ header }) => header.result ?? header.results);
  assert.strictEqual(answers.length, 1, 'a request is answered once');
  const others = units.map((unit) => unit.header);
  const extensions = others.filter((other) => other.extend).map((other) => other.extend);
  const logs = others.filter((other) => other.log).map((other) => [other.log, other.msg]);
  const [{ header, tail }] = answers;
  const take = contentsOf(tail);
  const holders = (header.results ?? [header])
    .map((holder) => (typeof holder === 'string' ? { result: holder } : holder));
  return holders.map((holder) => resultOf(holder, take, extensions, logs));
}

/** Gives the content of a field, which may lie in the bytes behind the header. */
function contentsOf(tail) {
  return (holder, name) => {
    const length = holder[`${name}_len`];
    if (length !== undefined) {
      const part = tail.subarray(0, length);
      tail = tail.subarray(length);
      return part;
    }
    if (holder[`${name}_b64`] !== undefined) return Buffer.from(holder[`${name}_b64`], 'base64');
    if (holder[name] === undefined) return undefined;
    return holder[name] === null ? null : Buffer.from(holder[name]);
  };
}

function resultOf(holder, take, extensions, logs) {
  const reply = take(holder, 'reply');
  const outputs = (holder.outputs ?? []).map((output) => ({
    topic: output.topic,
    key: take(output, 'key') ?? null,
    value: take(output, 'value') ?? null,
    headers: output.headers ?? {},
    delay: output.delay,
  }));
  return {
    verdict: holder.result,
    reason: holder.reason ?? '',
    delay: holder.delay,
    code: holder.code,
    reply,
    json: () => JSON.parse(reply.toString()),
    outputs,
    extensions,
    logs,
  };
}

module.exports = { call, callBatch };
