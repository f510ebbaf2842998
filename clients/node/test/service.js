// SPDX-License-Identifier: Apache-2.0
//
// A service of a few lines, for tests: starts a program and speaks with it, in either protocol.
// Waiting ends with what is waited for; a program that says nothing for a minute fails the test.
'use strict';

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');

const LIB = JSON.stringify(path.join(__dirname, '..'));
const WAIT_MS = 60000;

class Program {
  constructor(source, { protocol = 'lines', usesFd = true, handler = 'it', window = 4,
    hello = true } = {}) {
    this._protocol = protocol;
    this._held = Buffer.alloc(0);
    this._parts = []; // read, and not yet in _held
    this._arrived = 0; // bytes, of both
    this._need = 0; // so many must be there before there is anything to look at
    this._isOver = false;
    this._wake = () => {};
    const env = { ...process.env, LANEWAY_PROTOCOL: protocol, LANEWAY_FD: '3' };
    if (!usesFd) delete env.LANEWAY_FD;
    const stdio = usesFd ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'];
    const text = `const { App, Retry } = require(${LIB});\n${source}`;
    this.process = spawn(process.execPath, ['-e', text], { env, stdio });
    this.stdout = '';
    this.stderr = '';
    this.process.stderr.on('data', (data) => {
      this.stderr += data;
    });
    if (usesFd) {
      this.process.stdout.on('data', (data) => {
        this.stdout += data;
      });
    }
    this._answers = this.process.stdio[usesFd ? 3 : 1];
    this._answers.on('data', (data) => {
      this._parts.push(data);
      this._arrived += data.length;
      if (protocol === 'lines' ? data.includes(10) : this._arrived >= this._need) this._wake();
    });
    this._answers.on('end', () => {
      this._isOver = true;
      this._wake();
    });
    this._closed = once(this.process, 'close');
    this.process.stdin.on('error', () => {}); // it may end before it reads
    if (hello) this.send({ hello: { protocol: 1, service: 's', handler, window } });
  }

  /** All in one write, so that they are read at once. */
  send(...headers) {
    this.process.stdin.write(Buffer.concat(headers.map((header) => this._encode({ ...header }))));
  }

  _encode(header) {
    if (this._protocol === 'lines') return Buffer.from(`${JSON.stringify(header)}\n`);
    const body = Buffer.from(header.value ?? '');
    if (header.value !== undefined) header.value_len = body.length;
    delete header.value;
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    return Buffer.concat([length, text, body]);
  }

  message(id, value = '', fields = {}) {
    return { id, message_id: `main/t/0/${id}`, topic: 't', value, attempt: 1, ...fields };
  }

  /** The next thing that the program says; null at the end. */
  async read() {
    for (;;) {
      const unit = this._take();
      if (unit) return unit;
      if (this._isOver) {
        assert.strictEqual(this._held.length, 0, this._held.toString());
        return null;
      }
      await new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`nothing; ${this.stderr}`)), WAIT_MS);
        this._wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  _take() {
    this._held = Buffer.concat([this._held, ...this._parts.splice(0)]);
    const unit = this._decode();
    this._arrived = this._held.length;
    if (unit) this._need = 0;
    return unit;
  }

  _decode() {
    let at = this._held.indexOf(10) + 1;
    if (this._protocol === 'lines') {
      if (at === 0) return undefined;
      const unit = JSON.parse(this._held.toString('utf8', 0, at));
      this._held = this._held.subarray(at);
      return unit;
    }
    this._need = 4;
    if (this._held.length < this._need) return undefined;
    at = 4 + this._held.readUInt32BE(0);
    this._need = at;
    if (this._held.length < at) return undefined;
    const unit = JSON.parse(this._held.toString('utf8', 4, at));
    const size = unit.reply_len ?? 0;
    this._need = at + size;
    if (this._held.length < this._need) return undefined;
    if (unit.reply_len !== undefined) unit.reply = this._held.toString('utf8', at, at + size);
    this._held = this._held.subarray(at + size);
    return unit;
  }

  /** The ids of so many answers. */
  async ids(count) {
    const ids = [];
    while (ids.length < count) ids.push((await this.read()).id);
    return ids.sort((a, b) => a - b);
  }

  endInput() {
    this.process.stdin.end();
  }

  /** Its exit status, once all it wrote is read. */
  async wait() {
    return (await this._closed)[0];
  }

  async ends(status = 0) {
    this.endInput();
    assert.strictEqual(await this.read(), null);
    assert.strictEqual(await this.wait(), status, this.stderr);
  }
}

module.exports = { Program };
