import type { TestOptions, TestResult } from './kinds/test.ts'
import type { Health, Surface } from './model.ts'
import type { RouteExplanation } from './routing/router.ts'
import type { GatewayCaller, OpenCredential } from './state/organization-state.ts'

/** What the management of the gateway needs of its other rooms. */

/** Calls the provider once. */
export type TestCredential = (credential: OpenCredential, options: TestOptions) => Promise<TestResult>

/** Says which candidates a call would have, and calls nobody. @throws GatewayError where the call would */
export type ExplainRoute = (caller: GatewayCaller, name: string, surface: Surface) => RouteExplanation

/** What this process found out about credentials while it called them. */
export interface LiveHealth {
  healthOf(credentialId: number): Health
  /** Ends what rests: somebody has mended or tried it. */
  recover(credentialId: number): void
}

/** What a key with a budget has used of it. */
export interface Spent {
  spent_usd: string
  reserved_usd: string
  window_resets_at?: string
}

/** By key; one that is not there has spent nothing. */
export type SpentOf = (organizationId: number, keyIds: readonly number[]) => Promise<ReadonlyMap<number, Spent>>
