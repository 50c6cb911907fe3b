# Goes one of two ways, and on. Run it with: mem run FILE --input amount=250
workflow "NAME" {
  description = "Asks for approval of what is expensive"

  input "amount" {
    type    = number
    default = 50
  }

  node manual start {}

  node if expensive {
    condition = input.amount > 100
  }

  node set ask {
    name  = "answer"
    value = "${input.amount} needs an approval"
  }

  node set accept {
    name  = "answer"
    value = "${input.amount} is accepted"
  }

  node join done {}

  node transform answer {
    template = { answer = var.answer }
  }

  edge start expensive {}
  edge expensive ask { condition = "then" }
  edge expensive accept { condition = "else" }
  edge ask done {}
  edge accept done {}
  edge done answer {}
}
