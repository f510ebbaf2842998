// SPDX-License-Identifier: Apache-2.0
//
// Requests are read, and answers written, as the vectors of the protocols say.
'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { App, Dead, Drop, HandlerError, NULL, Retry } = require('..');
const { Frames, Lines, ProtocolError } = require('../lib/codec');
const { Message } = require('../lib/message');
const { Session } = require('../lib/session');
const { content, frameOf, lineOf, load } = require('./vectors');

const { context, hello, requests } = load('requests.json');
const said = load('answers.json').answers.filter((vector) => vector.say);
const exact = (number) => Number.isSafeInteger(number);

function feed(codec, data, step) {
  const found = [];
  for (let at = 0; at < data.length; at += step) {
    found.push(...codec.feed(data.subarray(at, at + step)));
  }
  return found;
}

/** Name to values: texts and nulls first, then what is no text. */
function headersOf(wanted) {
  const headers = {};
  for (const [name, value] of wanted) {
    const isBinary = value !== null && typeof value === 'object';
    (headers[name] ??= [[], []])[isBinary ? 1 : 0].push(isBinary ? content(value) : value);
  }
  return Object.fromEntries(Object.entries(headers).map(([name, lists]) => [name, lists.flat()]));
}

function checkRequest(fields, { id, message: wanted }) {
  const message = new Message(fields, null);
  assert.strictEqual(fields.id, id);
  assert.deepStrictEqual(message.value, content(wanted.value));
  assert.deepStrictEqual(message.key, content(wanted.key));
  assert.deepStrictEqual(message.orderingKey, content(wanted.ordering_key));
  if (exact(wanted.offset)) {
    assert.strictEqual(message.offset, wanted.offset);
    assert.strictEqual(message.messageId, `main/orders/3/${wanted.offset}`);
  }
  assert.strictEqual(message.attempt, wanted.attempt ?? 1);
  assert.strictEqual(message.timestamp?.getTime(), wanted.timestamp_ms);
  assert.strictEqual(message.eventTime?.getTime(), wanted.event_time_ms);
  const all = Object.fromEntries(message.headers.keys().map((name) => [name, message.headers.getAll(name)]));
  assert.deepStrictEqual(all, headersOf(wanted.headers ?? []));
  for (const name of ['topic', 'partition', 'subscription', 'pipeline']) {
    assert.strictEqual(message[name], context[name]);
  }
  const left = message.remaining();
  assert.strictEqual(left === null, wanted.deadline_ms === undefined);
  assert(left === null || left <= wanted.deadline_ms);
}

for (const [name, Codec, bytesOf] of [['lines', Lines, lineOf], ['frames', Frames, frameOf]]) {
  test(`${name} are read however they arrive`, () => {
    const data = Buffer.concat(requests.map(bytesOf));
    for (const step of [1, 7, 1000, data.length]) {
      const codec = new Codec();
      const found = feed(codec, data, step);
      assert.strictEqual(found.length, requests.length);
      assert(!codec.hasRest());
      found.forEach((fields, i) => checkRequest(fields, requests[i]));
    }
  });
}

test('the hello is read', () => {
  const [fields] = new Lines().feed(lineOf(hello));
  assert.deepStrictEqual(fields.hello, { protocol: 1, ...hello.hello });
});

test('what is not the protocol is refused', () => {
  for (const [codec, data] of [[new Lines(), 'hello\n'], [new Lines(), '7\n'],
    [new Frames(), '{"id":1}'], [new Frames(), '\0\0\0\u0002{]']]) {
    assert.throws(() => codec.feed(Buffer.from(data)), ProtocolError);
  }
});

// -- Answers -----------------------------------------------------------------------------------

/** A handler that does what a vector says. */
function obey(app, message, what) {
  for (const { topic, value, key, headers, delay_s: delay } of what.publish ?? []) {
    message.publish(topic, content(value), {
      key: content(key), headers, delay: delay === undefined ? undefined : delay * 1000,
    });
  }
  if (what.extend_s !== undefined) message.extend(what.extend_s * 1000);
  if (what.log) app.log(...what.log);
  if (what.reply !== undefined) {
    if (what.reply === null) return NULL;
    return what.reply.json ?? (what.reply.b64 ? content(what.reply) : what.reply);
  }
  const delay = what.delay_s === undefined ? undefined : what.delay_s * 1000;
  switch (what.verdict) {
    case 'retry': throw new Retry(what.reason, { delay });
    case 'dead': throw new Dead(what.reason);
    case 'drop': throw new Drop(what.reason);
    case 'error': throw new HandlerError(what.reason, { code: what.code });
    default: return undefined;
  }
}

/** What is written first: the line beside an answer if there is one. */
function written(codec, what) {
  const app = new App().handler((message) => obey(app, message, what));
  const units = [];
  const session = new Session(codec, { write: (data) => units.push(data) }, app.choose('any'));
  app._session = session;
  session.take([{ id: 1 }]);
  session.flush();
  return units[0];
}

test('lines are written as the vectors say', () => {
  assert(said.length >= 14);
  for (const vector of said) {
    const data = written(new Lines(), vector.say);
    assert.strictEqual(data[data.length - 1], 10);
    assert.deepStrictEqual(JSON.parse(data), JSON.parse(vector.line), vector.name);
  }
});

test('frames are written as the vectors say', () => {
  for (const vector of said) {
    const data = written(new Frames(), vector.say);
    const at = 4 + data.readUInt32BE(0);
    const header = JSON.parse(data.toString('utf8', 4, at));
    assert.deepStrictEqual(header, JSON.parse(vector.frame.header), vector.name);
    assert.deepStrictEqual(data.subarray(at), content(vector.frame.tail), vector.name);
  }
});

// -- Batches -----------------------------------------------------------------------------------

const batches = load('batches.json');

function writtenForAll(codec, whats) {
  const app = new App().handler({ batch: true }, (messages) => messages.map((message, i) => {
    try {
      return obey(app, message, whats[i]);
    } catch (verdict) {
      return verdict;
    }
  }));
  const units = [];
  const session = new Session(codec, { write: (data) => units.push(data) }, app.choose('any'));
  session.take([{ id: 1, messages: whats.map(() => ({})) }]);
  return new Promise((resolve) => {
    session.onIdle = () => {
      session.flush();
      resolve(units[0]);
    };
  });
}

for (const [name, Codec, bytesOf] of [['lines', Lines, lineOf], ['frames', Frames, frameOf]]) {
  test(`batches are read in ${name} however they arrive`, () => {
    for (const vector of batches.requests) {
      for (const step of [1, 1000]) {
        const [fields] = feed(new Codec(), bytesOf(vector), step);
        const members = fields.messages.map((member) => new Message(member, null));
        assert.deepStrictEqual(members.map(({ offset, key, value }) => [offset, key, value]),
          vector.messages.map((m) => [m.offset, content(m.key), content(m.value)]));
      }
    }
  });

  test(`batches are answered in ${name} as the vectors say`, async () => {
    for (const vector of batches.answers.filter(({ say }) => say)) {
      const data = await writtenForAll(new Codec(), vector.say);
      if (name === 'lines') {
        assert.deepStrictEqual(JSON.parse(data), JSON.parse(vector.line), vector.name);
      } else {
        const at = 4 + data.readUInt32BE(0);
        const header = JSON.parse(data.toString('utf8', 4, at));
        assert.deepStrictEqual(header, JSON.parse(vector.frame.header), vector.name);
        assert.deepStrictEqual(data.subarray(at), content(vector.frame.tail), vector.name);
      }
    }
  });
}
