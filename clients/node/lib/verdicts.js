// SPDX-License-Identifier: Apache-2.0
//
// What a handler may say beside "done": thrown or returned, as it suits the handler. Durations are
// milliseconds, or a text with units as in the configuration ("1m30s"); they are checked here,
// where the mistake is made, and not by the service.
'use strict';

const UNITS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };
const PART = /(\d+(?:\.\d+)?)(ms|[smhd])/g;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/;
const MS_MAX = 366 * 24 * 3600 * 1000;

/** Publishes a null (a tombstone), where undefined publishes nothing. */
const NULL = Symbol('laneway.NULL');

function milliseconds(value) {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || !DURATION.test(value)) {
    throw new TypeError(`${JSON.stringify(value)} is no duration such as "5s" or "1m30s"`);
  }
  let sum = 0;
  for (const [, number, unit] of value.matchAll(PART)) sum += Number(number) * UNITS[unit];
  return sum;
}

/** Gives a duration in whole milliseconds. */
function readDuration(value) {
  const ms = milliseconds(value);
  if (!(ms >= 0 && ms <= MS_MAX)) {
    throw new RangeError(`a duration of ${value} is out of range`);
  }
  return Math.round(ms);
}

class Verdict extends Error {
  constructor(result, reason) {
    super(String(reason));
    this.name = new.target.name;
    this.result = result;
    this.delay = undefined;
    this.code = undefined;
  }

  get reason() {
    return this.message;
  }
}

class Retry extends Verdict {
  constructor(reason = '', { delay } = {}) {
    super('retry', reason);
    if (delay !== undefined) this.delay = `${readDuration(delay)}ms`;
  }
}

class Dead extends Verdict {
  constructor(reason = '') {
    super('dead', reason);
  }
}

class Drop extends Verdict {
  constructor(reason = '') {
    super('drop', reason);
  }
}

class HandlerError extends Verdict {
  constructor(reason = '', { code } = {}) {
    super('error', reason);
    if (code !== undefined && !Number.isInteger(code)) {
      throw new TypeError('a code is a whole number');
    }
    this.code = code;
  }
}

module.exports = { Dead, Drop, HandlerError, NULL, Retry, Verdict, readDuration };
