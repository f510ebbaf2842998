// SPDX-License-Identifier: Apache-2.0

/// <reference types="node" />

/** Milliseconds, or a text with units such as "5s" or "1m30s". */
export type Duration = number | string;
/** Objects and arrays go as JSON. */
export type Payload = string | Uint8Array | object;
/** What a handler returns: a reply, NULL (publishes a null), a verdict, or nothing. */
export type Reply = Payload | typeof NULL | Verdict | null | undefined | void;
export type Handler = (message: Message) => Reply | Promise<Reply>;
/** Of several messages: nothing, a verdict for all, or a result for each. */
export type BatchReply = Reply[] | Verdict | null | undefined | void;
export type BatchHandler = (messages: Message[]) => BatchReply | Promise<BatchReply>;
export type HeaderValue = string | Buffer | null;
export type Level = 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** Publishes a null (a tombstone), where undefined publishes nothing. */
export const NULL: unique symbol;

export interface HandlerOptions {
  /**
   * True (the default): all messages of the window at once. False: one after the other, for
   * handlers that compute.
   */
  concurrent?: boolean;
  /** Errors of these classes are verdicts `retry`. */
  retryOn?: ErrorClass | ErrorClass[];
  /** Errors of these classes are verdicts `dead`. */
  deadOn?: ErrorClass | ErrorClass[];
}
export type ErrorClass = abstract new (...words: never[]) => unknown;

/** What a handler may throw or return beside "done". */
export abstract class Verdict extends Error {
  readonly result: 'retry' | 'dead' | 'drop' | 'error';
  readonly reason: string;
}
/** It may work later: after `delay`, or after the backoff of the pipeline. */
export class Retry extends Verdict {
  constructor(reason?: string, options?: { delay?: Duration });
}
/** It can never work: a dead letter, with the reason. */
export class Dead extends Verdict {
  constructor(reason?: string);
}
/** Ignored on purpose: settled, and counted apart. */
export class Drop extends Verdict {
  constructor(reason?: string);
}
/** No usable result. The pipeline decides, by its `errors` if there is a `code`. */
export class HandlerError extends Verdict {
  constructor(reason?: string, options?: { code?: number });
}

/** Headers by name: text, a Buffer where it is no UTF-8, or null. */
export class Headers implements Iterable<[string, HeaderValue]> {
  private constructor();
  has(name: string): boolean;
  /** The last value of that name. */
  get(name: string): HeaderValue | undefined;
  /** All values of that name, in order; those that are no text come last. */
  getAll(name: string): HeaderValue[];
  keys(): string[];
  [Symbol.iterator](): Iterator<[string, HeaderValue]>;
}

/** One attempt at one message. */
export class Message {
  private constructor();
  /** The payload; null is a null (a tombstone). */
  readonly value: Buffer | null;
  /** The payload as text, "" for a null. */
  readonly text: string;
  /** The payload read as JSON. SyntaxError if it is none, also for a null. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  json(): any;
  readonly key: Buffer | null;
  readonly keyText: string | null;
  readonly orderingKey: Buffer | null;
  readonly headers: Headers;
  /** The stable identity: the same in every retry. Remember it to notice duplicates. */
  readonly messageId: string;
  readonly topic: string;
  readonly partition: number;
  /** Rounded on Pulsar, where it is larger than Number.MAX_SAFE_INTEGER. */
  readonly offset: number;
  readonly subscription: string;
  readonly pipeline: string;
  readonly timestamp: Date | null;
  readonly eventTime: Date | null;
  /** Runs in the service that sent it, from 1. */
  readonly attempt: number;
  /** Republications through retry topics. */
  readonly retries: number;
  /** The broker's own count. */
  readonly redeliveries: number;
  /** Milliseconds until the attempt times out; null if it has no timeout. */
  remaining(): number | null;
  /** Still working: the attempt ends `duration` from now at the earliest. */
  extend(duration: Duration): void;
  /** Publishes a further message if the verdict is ok, before this one is settled. */
  publish(topic: string, value?: Payload | typeof NULL | null, options?: {
    key?: string | Uint8Array | null;
    headers?: Record<string, string | null | (string | null)[]>;
    delay?: Duration;
  }): void;
}

/** Collects handlers, then runs the one that the service asks for. */
export class App {
  /** Registers a handler under its name in the configuration. */
  handler(name: string, handler: Handler): this;
  handler(name: string, options: HandlerOptions & { batch?: false }, handler: Handler): this;
  /** With `batch`, one that takes several messages at once. */
  handler(name: string, options: HandlerOptions & { batch: true }, handler: BatchHandler): this;
  /** Registers one that serves whatever name the service asks for. */
  handler(handler: Handler): this;
  handler(options: HandlerOptions & { batch?: false }, handler: Handler): this;
  handler(options: HandlerOptions & { batch: true }, handler: BatchHandler): this;
  /** Called before the service hands messages over: open connections there. */
  onStart(hook: () => unknown): this;
  /** Called when all is answered. */
  onStop(hook: () => unknown): this;
  /** Writes a line to the service's log. */
  log(level: Level, text: string, fields?: Record<string, unknown>): void;
  /** Speaks with the service until it closes the input, then ends the process. */
  run(): Promise<void>;
}
