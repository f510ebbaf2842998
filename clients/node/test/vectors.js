// SPDX-License-Identifier: Apache-2.0
//
// The test vectors of the protocols, which the service's own tests read too.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const FOLDER = path.join(__dirname, '../../../tests/data/protocol');

function load(name) {
  return JSON.parse(fs.readFileSync(path.join(FOLDER, name), 'utf8'));
}

/** A Buffer, or null for a null. */
function content(value) {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.b64, 'base64');
}

function lineOf(vector) {
  return Buffer.from(`${vector.line}\n`);
}

function frameOf({ frame }) {
  const header = Buffer.from(frame.header);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(header.length);
  return Buffer.concat([length, header, content(frame.tail)]);
}

module.exports = { content, frameOf, lineOf, load };
