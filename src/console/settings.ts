import type { Clock } from '../base/clock.ts'
import type { MemoryService } from '../memory/service.ts'
import type { KernelConsole } from './kernel/kernel.ts'
import type { Sessions } from './session.ts'

export interface ConsoleSettings {
  /** The key to sign in with; without one the console is open. */
  apiKey: string | undefined
  apiKeyId: string | undefined
  /** Without a key and bound to loopback: a foreign Host is refused. */
  guardLoopback: boolean
  /** An action runs no longer (ms); streams are exempt. */
  timeoutMs: number
  /** Whether the gateway has its pages beside these. */
  hasGateway: boolean
  /** As `print-config` shows it, by section. */
  configuration: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** The certificate served, PEM. */
  certificate: string | undefined
}

/** What every page and action works with. */
export interface Console {
  service: MemoryService
  settings: ConsoleSettings
  clock: Clock
  /** Absent where no key is needed. */
  sessions: Sessions | undefined
  /** Absent where the kernel is not served. */
  kernel: KernelConsole | undefined
}
