/** The services of one listener, by the names of `mem serve --services`. */
export const SERVICES = ['memory', 'platform', 'gateway', 'kernel'] as const

export type ServiceName = (typeof SERVICES)[number]
