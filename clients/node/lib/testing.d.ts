// SPDX-License-Identifier: Apache-2.0

/// <reference types="node" />

import { App, HeaderValue, Payload } from './index.js';

/** What the service would read. */
export interface Result {
  verdict: 'ok' | 'retry' | 'dead' | 'drop' | 'error';
  reason: string;
  delay?: string;
  code?: number;
  /** undefined: none; null: a null is published. */
  reply?: Buffer | null;
  /** The reply read as JSON. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  json(): any;
  outputs: {
    topic: string;
    key: Buffer | null;
    value: Buffer | null;
    headers: Record<string, string | null | (string | null)[]>;
    delay?: string;
  }[];
  extensions: string[];
  logs: [string, string][];
}

export interface CallOptions {
  /** Which handler; without it, the program's only one. */
  handler?: string;
  key?: string | Uint8Array;
  headers?: Record<string, HeaderValue | HeaderValue[]>;
  protocol?: 'lines' | 'frames';
  /** Further fields of the protocol, such as topic, attempt, retries, deadline_ms. */
  [field: string]: unknown;
}

/** Runs a handler of `app` on one message, as a service would. */
export function call(app: App, value?: Payload | null, options?: CallOptions): Promise<Result>;
/** Runs a handler on several messages at once; a result for each. */
export function callBatch(app: App, values: (Payload | null)[], options?: CallOptions): Promise<Result[]>;
