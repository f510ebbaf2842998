#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// Confirms orders such as {"id": 7}. {"id": 7, "fails": 1} fails once before it works.
// Needs the client: npm install ./clients/node
'use strict';

const { App, Dead, Retry } = require('laneway');

const app = new App();

app.handler('confirm-order', { deadOn: SyntaxError }, async (message) => {
  const order = message.json();
  if (order?.id === undefined) throw new Dead('bad order: no id');
  if (message.attempt <= (order.fails ?? 0)) {
    throw new Retry('database timeout', { delay: '10ms' });
  }
  return { confirmed: order.id };
});

app.run();
