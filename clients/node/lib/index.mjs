// SPDX-License-Identifier: Apache-2.0
//
// The same for `import`.
import laneway from './index.js';

export const { App, Dead, Drop, HandlerError, Headers, Message, NULL, Retry, Verdict } = laneway;
