// SPDX-License-Identifier: Apache-2.0
//
// The program in README.md starts and answers.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');

const { Program } = require('./service');

test('the program of the readme answers', async () => {
  const text = fs.readFileSync(path.join(__dirname, '../README.md'), 'utf8');
  const blocks = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block);
  const block = blocks.find((source) => source.includes('app.run()'));
  const source = block.replace(/^const .*require.*\n/, 'const { Dead } = require(process.env.LIB);\n');
  process.env.LIB = path.join(__dirname, '..');
  const program = new Program(source, { handler: 'confirm-order' });
  assert(await program.read());
  program.send(program.message(1, '{"id": 7}'), program.message(2, '{}'));
  const results = [await program.read(), await program.read()].map(({ id, result }) => [id, result]);
  assert.deepStrictEqual(results.sort(), [[1, 'ok'], [2, 'dead']]);
  await program.ends();
});
