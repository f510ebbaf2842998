// SPDX-License-Identifier: Apache-2.0
//
// The same types for `import`.
export * from './index.js';
