# Asks a service and decides by its answer. Run it with: mem run FILE --input url=https://example.com
workflow "NAME" {
  description = "Checks that a service answers"

  input "url" {
    type = string
  }

  node manual start {}

  node http ask {
    url     = input.url
    timeout = "10s"

    retry {
      attempts = 3
      backoff  = "500ms"
    }
  }

  node transform healthy {
    template = { healthy = true, status = nodes.ask.output.statusCode }
  }

  node transform broken {
    template = { healthy = false, error = nodes.ask.error.message }
  }

  edge start ask {}
  edge ask healthy {}
  edge ask broken { on = "error" }
}
