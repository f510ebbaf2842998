// SPDX-License-Identifier: Apache-2.0
//
// What a handler's result becomes, by laneway/testing.
'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { App, Dead, Drop, HandlerError, NULL, Retry } = require('..');
const { Lines } = require('../lib/codec');
const { Session } = require('../lib/session');
const { call, callBatch } = require('../lib/testing');

const appOf = (run, options = {}) => new App().handler(options, run);
const thrower = (error) => () => {
  throw error;
};

/** Without what it prints to standard error; [result, printed]. */
async function quietly(...words) {
  return quiet(() => call(...words));
}

async function quiet(run) {
  const write = process.stderr.write;
  let printed = '';
  process.stderr.write = (text) => {
    printed += text;
    return true;
  };
  try {
    return [await run(), printed];
  } finally {
    process.stderr.write = write;
  }
}

test('nothing is ok without a reply', async () => {
  for (const nothing of [undefined, null]) {
    const result = await call(appOf(() => nothing));
    assert.strictEqual(result.verdict, 'ok');
    assert.strictEqual(result.reply, undefined);
  }
});

test('replies of all kinds in both protocols', async () => {
  for (const protocol of ['lines', 'frames']) {
    for (const reply of ['text é', '', 'half\u{1f600}']) {
      const result = await call(appOf(() => reply), 'x', { protocol });
      assert.deepStrictEqual(result.reply, Buffer.from(reply));
    }
    const bytes = await call(appOf(() => new Uint8Array([255, 0])), 'x', { protocol });
    assert.deepStrictEqual(bytes.reply, Buffer.from([255, 0]));
    const object = await call(appOf(() => ({ a: [1, 'é'] })), 'x', { protocol });
    assert.deepStrictEqual(object.json(), { a: [1, 'é'] });
    assert.strictEqual((await call(appOf(() => NULL), 'x', { protocol })).reply, null);
  }
});

test('verdicts may be thrown or returned, at once or later', async () => {
  for (const verdict of [new Retry('r', { delay: 1500 }), new Dead('r'), new Drop('r'),
    new HandlerError('r', { code: 7 })]) {
    for (const run of [thrower(verdict), () => verdict, async () => verdict,
      async () => Promise.reject(verdict)]) {
      const result = await call(appOf(run));
      assert.strictEqual(result.verdict, verdict.result);
      assert.strictEqual(result.reason, 'r');
      assert.strictEqual(result.delay, verdict.delay);
      assert.strictEqual(result.code, verdict.code);
    }
  }
});

test('an exception is an error and its stack is printed', async () => {
  const [result, printed] = await quietly(appOf((message) => message.json().customer.id), { id: 7 });
  assert.strictEqual(result.verdict, 'error');
  assert.match(result.reason, /^TypeError: /);
  assert.match(printed, /handlers\.test\.js/);
});

test('exceptions may be named as verdicts', async () => {
  const options = { retryOn: RangeError, deadOn: [SyntaxError, URIError] };
  for (const [error, verdict] of [[new RangeError('x'), 'retry'], [new SyntaxError('x'), 'dead'],
    [new TypeError('x'), 'error'], ['a text', 'error']]) {
    const [result, printed] = await quietly(appOf(thrower(error), options));
    assert.strictEqual(result.verdict, verdict);
    assert.strictEqual(printed !== '', verdict === 'error');
  }
});

test('what cannot be sent is an error of its message', async () => {
  const loop = {};
  loop.loop = loop;
  for (const protocol of ['lines', 'frames']) {
    for (const reply of [7, true, '\ud800', 10n, loop, Symbol('x'), () => 1]) {
      const [result] = await quietly(appOf(() => reply), 'x', { protocol });
      assert.strictEqual(result.verdict, 'error', String(reply));
    }
    const [result] = await quietly(appOf((message) => message.publish('t\udc00')), 'x', { protocol });
    assert.strictEqual(result.verdict, 'error');
  }
});

test('what cannot be sent is never one of the named classes', async () => {
  const options = { deadOn: TypeError, retryOn: Error };
  for (const reply of [7, '\ud800', new TypeError('returned, not thrown')]) {
    const [result, printed] = await quietly(appOf(() => reply, options));
    assert.strictEqual(result.verdict, 'error', String(reply));
    assert.match(printed, /TypeError/);
  }
  for (const replies of [7, [1, 2, 3], ['\ud800', 7]]) {
    const app = appOf(() => replies, { ...options, batch: true });
    const [results] = await quiet(() => callBatch(app, ['', '']));
    assert.deepStrictEqual(results.map(({ verdict }) => verdict), ['error', 'error']);
  }
});

test('bytes of every kind are bytes', async () => {
  const bytes = new Uint8Array([0, 1, 255, 0]);
  for (const reply of [bytes, bytes.buffer, new DataView(bytes.buffer), new Uint16Array(bytes.buffer)]) {
    const result = await call(appOf(() => reply));
    assert.deepStrictEqual(result.reply, Buffer.from(bytes));
  }
});

test('whatever is thrown is an error of its message', async () => {
  const odd = new Error('x');
  odd.message = Object.create(null);
  for (const thrown of [undefined, null, 7, Symbol('x'), Object.create(null), odd]) {
    for (const run of [thrower(thrown), () => Promise.reject(thrown)]) { // eslint-disable-line
      const [result] = await quietly(appOf(run));
      assert.strictEqual(result.verdict, 'error');
    }
  }
});

test('JSON is the same in both protocols', async () => {
  for (const [value, wanted] of [['{"a":"é\ufffd"}', { a: 'é\ufffd' }], ['\ufeff{}', undefined],
    [Buffer.from([34, 255, 34]), undefined]]) {
    for (const protocol of ['lines', 'frames']) {
      let seen;
      const result = await call(appOf((message) => {
        seen = message.json();
      }, { deadOn: SyntaxError }), value, { protocol });
      assert.deepStrictEqual([result.verdict, seen], [wanted ? 'ok' : 'dead', wanted]);
    }
  }
});

test('a reason is cut and made text', async () => {
  const long = await call(appOf(thrower(new Dead('x'.repeat(9999)))));
  assert.strictEqual(long.reason, 'x'.repeat(512));
  const half = await call(appOf(thrower(new Dead('half \ud800'))));
  assert.strictEqual(half.reason, 'half \ufffd');
});

test('outputs are published with a reply, and only if the verdict is ok', async () => {
  const run = (message) => {
    message.publish('audit', { seen: message.keyText }, {
      key: Buffer.from('k'), delay: '1m30s', headers: { a: ['1', null] },
    });
    message.publish('gone', NULL, { key: 'k' });
    if (message.text === 'later') throw new Retry('later');
    return 'r';
  };
  for (const protocol of ['lines', 'frames']) {
    const result = await call(appOf(run), 'x', { key: 'c-1', protocol });
    assert.deepStrictEqual(result.reply, Buffer.from('r'));
    assert.deepStrictEqual(result.outputs, [
      { topic: 'audit', key: Buffer.from('k'), value: Buffer.from('{"seen":"c-1"}'),
        headers: { a: ['1', null] }, delay: '90000ms' },
      { topic: 'gone', key: Buffer.from('k'), value: null, headers: {}, delay: undefined },
    ]);
    assert.deepStrictEqual((await call(appOf(run), 'later', { protocol })).outputs, []);
  }
});

test('extending moves the deadline, and says nothing after the answer', async () => {
  let kept;
  const run = (message) => {
    kept = message;
    const before = message.remaining();
    message.extend('60s');
    message.extend(1000);
    return [before <= 5000, message.remaining() > 30000];
  };
  const result = await call(appOf(run), 'x', { deadline_ms: 5000 });
  assert.deepStrictEqual(result.extensions, ['60000ms', '1000ms']);
  assert.deepStrictEqual(result.json(), [true, true]);
  kept._session.say = () => assert.fail('something is said');
  kept.extend(1000);
});

test('logs have levels and fields', async () => {
  const app = appOf(() => app.log('warn', 'disk is full', { free: '0 B', node: 3 }));
  assert.deepStrictEqual((await call(app)).logs, [['warn', 'disk is full free=0 B node=3']]);
  const loud = appOf(() => loud.log('loud', 'x'));
  assert.strictEqual((await quietly(loud))[0].verdict, 'error');
});

test('headers are read by name', async () => {
  const seen = [];
  const run = ({ headers }) => {
    seen.push(headers.get('a'), headers.getAll('a'), headers.get('none'), headers.has('n'),
      headers.get('n'), headers.get('b'), [...headers].length, headers.get('constructor'));
  };
  await call(appOf(run), 'x', { headers: { a: ['1', '2'], n: null, b: Buffer.from([255]) } });
  assert.deepStrictEqual(seen, ['2', ['1', '2'], undefined, true, null, Buffer.from([255]), 3,
    undefined]);
});

test('handlers are chosen by name, or else the one without', () => {
  const app = new App().handler('a', () => 'a').handler(() => 'any');
  assert.strictEqual(app.choose('a').run(), 'a');
  assert.strictEqual(app.choose('b').run(), 'any');
  assert.throws(() => app.handler('a', () => {}), /already/);
  for (const wrong of ['SyntaxError', new Error('x'), [Error, 7], null]) {
    assert.throws(() => app.handler('b', { deadOn: wrong }, () => {}), /no class of errors/);
    assert.throws(() => app.handler('b', { retryOn: wrong }, () => {}), /no class of errors/);
  }
  assert.throws(() => app.handler('c'), /function/);
});

test('durations are checked where they are given', () => {
  for (const [value, wanted] of [[5000, '5000ms'], ['5s', '5000ms'], ['1m30s', '90000ms'],
    ['1.5s', '1500ms'], [0, '0ms']]) {
    assert.strictEqual(new Retry('', { delay: value }).delay, wanted);
  }
  for (const value of ['5', '', '5 s', -1, NaN, Infinity, 4e10, '-5s', {}]) {
    assert.throws(() => new Retry('', { delay: value }));
  }
});

/** [verdict, reply] of each, which must be the same in both protocols. */
async function verdictsOf(run, values, options) {
  const lists = [];
  for (const protocol of ['lines', 'frames']) {
    const [results] = await quiet(() => callBatch(appOf(run, options), values, { protocol }));
    lists.push(results.map(({ verdict, reply }) => [verdict, reply?.toString()]));
  }
  assert.deepStrictEqual(lists[0], lists[1]);
  return lists[0];
}

test('each message of a batch has a result of its own', async () => {
  const run = (messages) => {
    messages[0].publish('audit', messages[0].value);
    return messages.map(({ text }) => (text === 'x' ? new Dead('never') : text.toUpperCase()));
  };
  assert.deepStrictEqual(await verdictsOf(run, ['a', 'x', 'c'], { batch: true }),
    [['ok', 'A'], ['dead', undefined], ['ok', 'C']]);
  const results = await callBatch(appOf(run, { batch: true }), ['a', 'b'], { protocol: 'frames' });
  assert.deepStrictEqual(results.map(({ outputs }) => outputs.length), [1, 0]);
});

test('nothing is ok for each message of a batch, and an exception is for all', async () => {
  const two = (run) => verdictsOf(run, ['a', 'b'], { batch: true });
  assert.deepStrictEqual(await two(() => {}), Array(2).fill(['ok', undefined]));
  for (const run of [thrower(new Retry('later')), async () => new Retry('later')]) {
    assert.deepStrictEqual(await two(run), Array(2).fill(['retry', undefined]));
  }
  for (const run of [() => 7, async () => [1, 2, 3]]) {
    assert.deepStrictEqual(await two(run), Array(2).fill(['error', undefined]));
  }
});

test('what cannot be sent is an error of its message alone', async () => {
  for (const wrong of [7, '\ud800']) {
    const verdicts = await verdictsOf(() => [wrong, 'b'], ['', ''], { batch: true });
    assert.deepStrictEqual(verdicts, [['error', undefined], ['ok', 'b']]);
  }
});

test('messages that come while another has just run wait for their turn', async () => {
  const began = [];
  let active = 0;
  const run = (message) => { // the first is done at once, the others are not
    assert.strictEqual(active, 0, `${message.text} while another runs`);
    began.push(message.text);
    if (message.text === 'a') return undefined;
    active++;
    return new Promise(setImmediate).then(() => {
      active--;
    });
  };
  const handler = { batch: false, concurrent: false, deadOn: [], retryOn: [], run };
  const session = new Session(new Lines(), { write: () => {} }, handler);
  session.take([{ id: 1, value: 'a' }]);
  session.take([{ id: 2, value: 'b' }, { id: 3, value: 'c' }]);
  while (!session.isIdle) {
    await new Promise((resolve) => {
      session.onIdle = resolve;
    });
  }
  assert.deepStrictEqual(began, ['a', 'b', 'c']);
});

test('handlers of one message and of batches get what they take', async () => {
  for (const concurrent of [true, false]) {
    const verdicts = await verdictsOf((message) => message.json(), ['[1]', '{', '[2]'], { concurrent });
    assert.deepStrictEqual(verdicts, [['ok', '[1]'], ['error', undefined], ['ok', '[2]']]);
  }
  const one = await call(appOf(async (all) => [`${all.length} ${all[0].text}`], { batch: true }), 'a');
  assert.strictEqual(one.reply.toString(), '1 a');
});
