import { CAPABILITIES, type Capability, type Component, type Operation } from './capability-table.ts'
import { KernelError } from './errors.ts'

/** What the table says, given what is wired. Contract: kernel-1.md 2, 17. */

/** What a kernel has; whoever may change the skill registry says so beside it. */
export interface Wiring {
  components: ReadonlySet<Component>
  /** `METHOD path` of what is served at all. */
  served: ReadonlySet<string>
  mutationAuthority: boolean
}

export interface KernelRoute {
  method: string
  /** Below the API root, with `{name}` for parts that vary. */
  path: string
  capability: string
  operation: Operation
}

/** Every route of a capability, once: one that serves several operations bears the first. */
export function kernelRoutes(): KernelRoute[] {
  const routes = new Map<string, KernelRoute>()
  for (const { id, operations } of CAPABILITIES) {
    for (const operation of operations) {
      for (const route of operation.routes) {
        const [method = '', path = ''] = route.split(' ')
        if (!routes.has(route)) routes.set(route, { method, path, capability: id, operation })
      }
    }
  }
  return [...routes.values()]
}

/** What an operation lacks: the first of its components, else who serves its routes. */
const firstMissing = (
  capability: string,
  { needs, routes }: Operation,
  { components, served }: Wiring,
): string | undefined =>
  needs.find((component) => !components.has(component)) ??
  (routes.every((route) => served.has(route)) ? undefined : `${capability} service`)

/** @throws not_configured, naming the first component that is missing; forbidden without authority over the registry */
export function checkOperation(
  { capability, operation }: Pick<KernelRoute, 'capability' | 'operation'>,
  wiring: Wiring,
): void {
  const component = firstMissing(capability, operation, wiring)
  if (component !== undefined)
    throw new KernelError('not_configured', unavailable(capability, operation.name, component))
  if (operation.mutates && !wiring.mutationAuthority) {
    throw new KernelError('forbidden', `${capability} ${operation.name} needs authority to change installed skills`)
  }
}

const unavailable = (capability: string, operation: string, component: string): string =>
  `${component} is not configured: ${capability} ${operation} is unavailable`

/** Every text of a 501 that there can be. */
export const unavailableTexts = (): string[] =>
  CAPABILITIES.flatMap(({ id, operations }) =>
    operations
      .filter(({ routes }) => routes.length > 0)
      .flatMap(({ name, needs }) => needs.map((component) => unavailable(id, name, component))),
  )

export interface CapabilityDocument {
  apiVersion: 'agent-kernel/v1'
  capabilities: { id: string; version: string; available: true; operations: string[] }[]
}

/** What succeeds with this wiring, and nothing else. */
export function capabilityDocument(wiring: Wiring): CapabilityDocument {
  const offered = ({ id, operations }: Capability): string[] =>
    operations
      .filter((operation) => !firstMissing(id, operation, wiring) && (!operation.mutates || wiring.mutationAuthority))
      .map(({ name }) => name)
  return {
    apiVersion: 'agent-kernel/v1',
    capabilities: CAPABILITIES.flatMap((capability) => {
      const operations = offered(capability)
      const { id, version } = capability
      return operations.length > 0 ? [{ id, version, available: true, operations }] : []
    }),
  }
}
