import type { Family } from '../form.ts'

/**
 * What stands for the signature of a thought that has none: whose it is, so that it goes back to no other. Contract:
 * gateway.md 5.3.
 */
export const unsigned = (family: Family): string => `unsigned:${family}`
