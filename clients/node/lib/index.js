// SPDX-License-Identifier: Apache-2.0
//
// Handlers for Laneway. README.md says how; docs/protocol.md of Laneway is what it speaks.
'use strict';

const { App } = require('./app');
const { Headers, Message } = require('./message');
const { NULL, Verdict, Retry, Dead, Drop, HandlerError } = require('./verdicts');

module.exports = { App, Dead, Drop, HandlerError, Headers, Message, NULL, Retry, Verdict };
