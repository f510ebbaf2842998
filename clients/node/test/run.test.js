// SPDX-License-Identifier: Apache-2.0
//
// Whole programs under a service of a few lines: handshake, concurrency, prints, the end.
'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const { Program } = require('./service');

const ECHO = "new App().handler('it', (message) => message.text).run();";
const CONCURRENT = { ready: { protocol: 1, concurrent: true } };

for (const protocol of ['lines', 'frames']) {
  for (const usesFd of [true, false]) {
    test(`messages are answered in ${protocol}, ${usesFd ? 'fd 3' : 'standard output'}`, async () => {
      const program = new Program(ECHO, { protocol, usesFd });
      assert.deepStrictEqual(await program.read(), CONCURRENT);
      program.send(...[1, 2, 3].map((id) => program.message(id, `v${id} é`)));
      for (const id of [1, 2, 3]) {
        const answer = await program.read();
        assert.deepStrictEqual([answer.id, answer.reply], [id, `v${id} é`]);
      }
      await program.ends();
    });
  }

  test(`a large message comes and goes whole in ${protocol}`, async () => {
    const program = new Program(ECHO, { protocol });
    await program.read();
    program.send(program.message(1, 'x'.repeat(3000000)));
    assert.strictEqual((await program.read()).reply.length, 3000000);
    await program.ends();
  });
}

for (const protocol of ['lines', 'frames']) {
  test(`an answer that is too large is an error of its message and no more in ${protocol}`, async () => {
    const large = 16 * 1024 * 1024;
    const program = new Program(`
      new App().handler('it', (message) => {
        const [way, size] = message.text.split(' ');
        if (way === 'text') return 'x'.repeat(Number(size));
        const bytes = Buffer.alloc(Number(size), 'x');
        if (way === 'bytes') return bytes;
        message.publish('t', bytes);
        return undefined;
      }).run();`, { protocol });
    await program.read();
    for (const [index, way] of ['text', 'bytes', 'output'].entries()) {
      program.send(program.message(index + 1, `${way} ${large}`));
      const { id, result, reason } = await program.read();
      assert.deepStrictEqual([id, result], [index + 1, 'error']);
      assert.match(reason, /^RangeError: .*at most 16 MiB more than its request/);
    }
    // As large as its request, and more than what is allowed to a small one.
    program.send(program.message(4, `text ${large} ${'y'.repeat(2000)}`));
    assert.strictEqual((await program.read()).reply.length, large);
    await program.ends();
  });
}

test('a log line without end is cut', async () => {
  const program = new Program(`
    const app = new App();
    app.handler('it', () => app.log('info', 'x'.repeat(17 * 1024 * 1024))).run();`);
  await program.read();
  program.send(program.message(1));
  assert.strictEqual((await program.read()).msg.length, 65536);
  assert.deepStrictEqual(await program.read(), { id: 1, result: 'ok' });
  await program.ends();
});

test('a last message that came with the end is answered', async () => {
  const program = new Program("new App().handler('it', async (m) => m.text).run();");
  program.send(program.message(1, 'a'), program.message(2, 'b'));
  program.endInput();
  assert.deepStrictEqual(await program.read(), CONCURRENT);
  assert.deepStrictEqual(await program.ids(2), [1, 2]);
  await program.ends();
});

test('prints do no harm', async () => {
  const source = "new App().handler('it', () => { console.log('printed'); return 'x'; }).run();";
  for (const usesFd of [true, false]) {
    const program = new Program(source, { usesFd });
    await program.read();
    program.send(program.message(1));
    assert.deepStrictEqual(await program.read(), { id: 1, result: 'ok', reply: 'x' });
    await program.ends();
    assert.strictEqual(usesFd ? program.stdout : program.stderr, 'printed\n');
  }
});

test('all messages of the window run at once', async () => {
  const program = new Program(`
    const waiting = [];
    new App().handler('it', (message) => new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 4) waiting.splice(0).forEach((done) => done('together'));
    })).run();`);
  await program.read();
  program.send(...[1, 2, 3, 4].map((id) => program.message(id)));
  assert.deepStrictEqual(await program.ids(4), [1, 2, 3, 4]);
  program.send(...[5, 6, 7, 8].map((id) => program.message(id)));
  program.endInput();
  assert.deepStrictEqual(await program.ids(4), [5, 6, 7, 8]);
  await program.ends();
});

test('a handler that is not concurrent gets one after the other', async () => {
  const program = new Program(`
    let active = 0;
    new App().handler('it', { concurrent: false }, async () => {
      active++;
      await new Promise(setImmediate);
      return String(active--);
    }).run();`);
  assert.deepStrictEqual(await program.read(), { ready: { protocol: 1 } });
  program.send(...[1, 2, 3].map((id) => program.message(id)));
  for (const id of [1, 2, 3]) {
    assert.deepStrictEqual(await program.read(), { id, result: 'ok', reply: '1' });
  }
  await program.ends();
});

test('an answer does not wait for a handler that computes', async () => {
  const fifo = path.join(os.tmpdir(), `laneway-client-${process.pid}`);
  execFileSync('mkfifo', [fifo]);
  try {
    const source = (options) => `new App().handler('it', ${options}, (message) => {
      if (message.text) require('node:fs').readFileSync(message.text);
    }).run();`;
    const program = new Program(source('{ concurrent: false }'));
    await program.read();
    program.send(program.message(1), program.message(2, fifo), program.message(3));
    assert.strictEqual((await program.read()).id, 1);
    fs.writeFileSync(fifo, 'go');
    assert.deepStrictEqual(await program.ids(2), [2, 3]);
    await program.ends();
  } finally {
    fs.unlinkSync(fifo);
  }
});

test('extensions and logs come while a handler runs', async () => {
  const program = new Program(`
    const app = new App();
    app.handler('it', (message) => {
      message.extend('30s');
      app.log('info', 'halfway', { of: 2 });
    }).run();`);
  await program.read();
  program.send(program.message(1));
  assert.deepStrictEqual(await program.read(), { id: 1, extend: '30000ms' });
  assert.deepStrictEqual(await program.read(), { log: 'info', msg: 'halfway of=2' });
  assert.deepStrictEqual(await program.read(), { id: 1, result: 'ok' });
  await program.ends();
});

test('what goes wrong before ready is said and nothing is ready', async () => {
  for (const [source, options, status, text] of [
    [ECHO, { handler: 'other' }, 78, /"other"; this program has: it/],
    [ECHO, { hello: false }, 64, /did not begin with hello/],
    [ECHO, { protocol: 'lines', hello: false, first: 'smoke\n' }, 76, /no JSON/],
    // 78 of `once`: the handler is broken, not the message.
    [`process.env.LANEWAY_PROTOCOL = 'once'; ${ECHO}`, { hello: false }, 78, /not once/],
    [`process.env.LANEWAY_PROTOCOL = 'smoke'; ${ECHO}`, {}, 78, /not smoke/],
    [`new App().onStart(() => { throw new Error('no database'); }).handler('it', () => {}).run();`,
      {}, 1, /no database/],
    [`new App().onStart(() => { throw Object.assign(new Error('gone'), { status: 256 }); })
      .handler('it', () => {}).run();`, {}, 1, /gone/],
  ]) {
    const program = new Program(source, options);
    if (options.first) program.process.stdin.write(options.first);
    await program.ends(status);
    assert.match(program.stderr, text);
  }
});

test('hooks frame the work', async () => {
  const program = new Program(`
    const app = new App();
    app.onStart(() => app.log('info', 'open'));
    app.onStop(async () => app.log('info', 'closed'));
    app.handler('it', () => {}).run();`);
  program.send(program.message(1));
  program.endInput();
  const said = [];
  for (let unit = await program.read(); unit; unit = await program.read()) said.push(unit);
  assert.deepStrictEqual(said.map((unit) => Object.keys(unit)[0]), ['log', 'ready', 'id', 'log']);
});

test('what was answered is written when a handler ends the process', async () => {
  for (const [end, status] of [['process.exit(7)', 7],
    ["process.nextTick(() => { throw new Error('x'); })", 1]]) {
    const program = new Program(`
      new App().handler('it', (message) => {
        if (message.text === 'go') { ${end}; return new Promise(() => {}); }
        return message.text;
      }).run();`);
    await program.read();
    program.send(program.message(1, 'a'), program.message(2, 'go'), program.message(3, 'b'));
    const answers = [];
    for (let unit = await program.read(); unit; unit = await program.read()) answers.push(unit.id);
    assert.deepStrictEqual(answers, status === 7 ? [1] : [1, 3]);
    assert.strictEqual(await program.wait(), status, program.stderr);
  }
});

test('a service that goes away from standard output is no crash', async () => {
  const program = new Program(ECHO, { usesFd: false });
  await program.read();
  program._answers.destroy();
  program.send(program.message(1));
  program.endInput();
  assert.strictEqual(await program.wait(), 0, program.stderr);
});

test('a service that goes away is no crash', async () => {
  const program = new Program(ECHO);
  await program.read();
  program._answers.destroy();
  program.send(program.message(1));
  program.endInput();
  assert.strictEqual(await program.wait(), 0, program.stderr);
  assert.strictEqual(program.stderr, '');
});
