// SPDX-License-Identifier: Apache-2.0
//
// The package is imported by its name, as a module and by require, and says the same things.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import test from 'node:test';

import * as imported from 'laneway';
import { call } from 'laneway/testing';

test('both ways give the same', () => {
  const required = createRequire(import.meta.url)('laneway');
  for (const name of Object.keys(required)) assert.strictEqual(imported[name], required[name]);
});

test('the testing helper is imported by name', async () => {
  const app = new imported.App().handler((message) => message.text);
  assert.strictEqual((await call(app, 'abc')).reply.toString(), 'abc');
});
