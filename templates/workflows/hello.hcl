# Greets somebody. Run it with: mem run FILE --input who=you
workflow "NAME" {
  description = "Greets somebody"

  input "who" {
    type        = string
    default     = "world"
    description = "Whom to greet"
  }

  node manual start {}

  node set greet {
    name  = "greeting"
    value = "Hello ${input.who}"
  }

  edge start greet {}
}
