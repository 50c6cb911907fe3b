# Restarts a deployment in Kubernetes, but only when it is not being rolled out already, and waits until it is back.
#   mem validate docs/examples/restart.hcl
# The k8s nodes need a client, which a program gives: createNodeRegistry({ orchestrator: createKubernetesClient(…) })
workflow "restart" {
  input "deployment" {
    type = string
  }

  input "namespace" {
    type    = string
    default = "default"
  }

  node manual start {}

  node k8s-get before {
    kind      = "Deployment"
    name      = input.deployment
    namespace = input.namespace
  }

  node if steady {
    condition = try(nodes.before.output.object.status.updatedReplicas, 0) == nodes.before.output.object.spec.replicas
  }

  node k8s-restart restart {
    kind      = "Deployment"
    name      = input.deployment
    namespace = input.namespace
  }

  node delay settle { duration = "100ms" }

  node k8s-get after {
    kind      = "Deployment"
    name      = input.deployment
    namespace = input.namespace
  }

  node k8s-events events {
    kind      = "Deployment"
    name      = input.deployment
    namespace = input.namespace
  }

  node transform done {
    template = {
      restarted = true
      ready     = try(nodes.after.output.object.status.readyReplicas, 0)
      events    = [for event in nodes.events.output.items : try(event.reason, "")]
    }
  }

  node transform left_alone {
    template = { restarted = false, why = "a rollout is running" }
  }

  edge start before {}
  edge before steady {}
  edge steady restart { condition = "then" }
  edge steady left_alone { condition = "else" }
  edge restart settle {}
  edge settle after {}
  edge settle events {}
  edge after done {}
  edge events done {}
}
