//! Properties that hold for any output of a CNI plugin and any network configuration: the target of `fuzz/` panics on a
//! violation.

pub use crate::cni::fuzz::cni;

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_output_of_a_plugin_keeps_every_property() {
        fuzz_corpus::run("cni", super::cni, 4000);
    }
}
