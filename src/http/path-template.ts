/** `/workspaces/:ws/memories/:id(^[^:@]+)::append` is `/workspaces/{ws}/memories/{id}:append`. */
export const pathTemplate = (pattern: string): string =>
  pattern.replace(/::|:(\w+)(?:\([^)]*\))?/g, (found, name: string | undefined) => (found === '::' ? ':' : `{${name}}`))
