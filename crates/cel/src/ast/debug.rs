//! The tree as cel-go's debug text shows it.

use std::fmt::Write as _;

use coracle_api::go_text::{Float, Quoted};

use crate::large_stack;

use super::{Ast, Comprehension, Expr, Literal, NodeId};

impl Ast {
    /// The tree as text, one operand per line.
    #[must_use]
    pub fn debug_text(&self) -> String {
        let write = || {
            let mut writer = Writer {
                ast: self,
                text: String::new(),
                indent: 0,
                line_start: true,
            };
            writer.node(self.root());
            writer.text
        };

        if self.is_deep() {
            large_stack::run(write).unwrap_or_default()
        } else {
            write()
        }
    }
}

struct Writer<'a> {
    ast: &'a Ast,
    text: String,
    indent: usize,
    line_start: bool,
}

impl Writer<'_> {
    fn write(&mut self, text: &str) {
        if self.line_start {
            self.line_start = false;
            self.text.push_str(&"  ".repeat(self.indent));
        }
        self.text.push_str(text);
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.line_start = true;
    }

    fn node(&mut self, node: NodeId) {
        match self.ast.expr(node) {
            Expr::Literal(literal) => self.write(&literal_text(literal)),
            Expr::Ident(name) => self.write(name),
            Expr::Select {
                operand,
                field,
                test_only,
            } => {
                self.node(*operand);
                self.write(".");
                self.write(field);
                if *test_only {
                    self.write("~test-only~");
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => self.call(function, *target, args),
            Expr::List { elements, .. } => {
                self.write("[");
                self.items(elements.iter(), |writer, element| writer.node(*element));
                self.write("]");
            }
            Expr::Map { entries } => {
                self.write("{");
                self.items(entries.iter(), |writer, entry| {
                    writer.write(if entry.optional { "?" } else { "" });
                    writer.node(entry.key);
                    writer.write(":");
                    writer.node(entry.value);
                });
                self.write("}");
            }
            Expr::Struct { name, fields } => {
                self.write(name);
                self.write("{");
                self.items(fields.iter(), |writer, field| {
                    writer.write(if field.optional { "?" } else { "" });
                    writer.write(&field.name);
                    writer.write(":");
                    writer.node(field.value);
                });
                self.write("}");
            }
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::Unspecified => self.write(""),
        }
        // cel-go appends an empty note to each node, which indents a new line.
        self.write("");
    }

    fn items<T>(&mut self, items: impl ExactSizeIterator<Item = T>, show: impl Fn(&mut Self, T)) {
        if items.len() == 0 {
            return;
        }
        self.line();
        self.indent += 1;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.write(",");
                self.line();
            }
            show(self, item);
        }
        self.indent -= 1;
        self.line();
    }

    fn call(&mut self, function: &str, target: Option<NodeId>, args: &[NodeId]) {
        if let Some(target) = target {
            self.node(target);
            self.write(".");
        }
        self.write(function);
        self.write("(");
        self.items(args.iter(), |writer, arg| writer.node(*arg));
        self.write(")");
    }

    fn fold(&mut self, fold: &Comprehension) {
        let node = |part: NodeId| move |writer: &mut Self| writer.node(part);
        let name = |name: &str| {
            let name = name.to_owned();
            move |writer: &mut Self| writer.write(&name)
        };

        self.write("__comprehension__(");
        self.indent += 1;
        self.line();
        self.part("// Variable", name(&fold.iter_var));
        if let Some(second) = &fold.iter_var2 {
            self.write(second);
            self.write(",");
            self.line();
        }
        self.part("// Target", node(fold.iter_range));
        self.part("// Accumulator", name(&fold.accu_var));
        self.part("// Init", node(fold.accu_init));
        self.part("// LoopCondition", node(fold.loop_condition));
        self.part("// LoopStep", node(fold.loop_step));
        self.write("// Result");
        self.line();
        self.node(fold.result);
        self.write(")");
        self.indent -= 1;
    }

    fn part(&mut self, title: &str, show: impl FnOnce(&mut Self)) {
        self.write(title);
        self.line();
        show(self);
        self.write(",");
        self.line();
    }
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Null => "null".into(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Uint(value) => format!("{value}u"),
        Literal::Double(value) => Float(*value).to_string(),
        Literal::String(value) => Quoted(value).to_string(),
        Literal::Bytes(value) => quote_bytes(value),
    }
}

/// Go's `%q` of bytes: what is no UTF-8 is shown in hexadecimal.
fn quote_bytes(bytes: &[u8]) -> String {
    let mut text = String::from("b\"");
    for chunk in bytes.utf8_chunks() {
        let quoted = Quoted(chunk.valid()).to_string();
        text.push_str(&quoted[1..quoted.len() - 1]);
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes all");
        }
    }
    text.push('"');
    text
}
