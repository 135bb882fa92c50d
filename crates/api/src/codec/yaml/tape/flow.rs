//! Flow collections.

use super::super::Error;
use super::super::token::Kind;
use super::{Composer, Content, Context, Expects};

impl Composer<'_> {
    pub(super) fn flow_entry(&mut self, first: bool) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !first && !matches!(token.kind, Kind::FlowSequenceEnd) {
            if !matches!(token.kind, Kind::FlowEntry) {
                return Err(self.error("did not find expected ',' or ']'", line));
            }
            self.scanner.take();
        }

        self.expect(Expects::FlowEntry { first: false });

        match self.scanner.peek()?.kind {
            Kind::FlowSequenceEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            Kind::Key => {
                let line = self.scanner.take().line;
                self.open(Expects::PairKey, line, Content::Mapping(0));
                Ok(())
            }
            _ => self.node(Context::Flow),
        }
    }

    pub(super) fn pair_key(&mut self) -> Result<(), Error> {
        self.expect(Expects::PairValue);
        let token = self.scanner.peek()?;

        let line = token.line;
        match token.kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // Upstream drops this token, so that `[? : a]` is an error.
                self.scanner.take();
                self.empty_scalar(line);
                Ok(())
            }
            _ => self.node(Context::Flow),
        }
    }

    pub(super) fn pair_value(&mut self) -> Result<(), Error> {
        self.expect(Expects::PairEnd);
        self.flow_member(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowSequenceEnd))
    }

    pub(super) fn flow_key(&mut self, first: bool) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !first && !matches!(token.kind, Kind::FlowMappingEnd) {
            if !matches!(token.kind, Kind::FlowEntry) {
                return Err(self.error("did not find expected ',' or '}'", line));
            }
            self.scanner.take();
        }

        match self.scanner.peek()?.kind {
            Kind::FlowMappingEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            Kind::Key => {
                self.scanner.take();
                self.expect(Expects::FlowValue);
                let token = self.scanner.peek()?;

                let line = token.line;
                if matches!(
                    token.kind,
                    Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd
                ) {
                    self.empty_scalar(line);
                    return Ok(());
                }

                self.node(Context::Flow)
            }
            _ => {
                self.expect(Expects::NoFlowValue);
                self.node(Context::Flow)
            }
        }
    }

    pub(super) fn flow_value(&mut self) -> Result<(), Error> {
        self.expect(Expects::FlowKey { first: false });
        self.flow_member(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowMappingEnd))
    }

    /// The part after a key: a colon and a node, or less.
    fn flow_member(&mut self, ends: fn(&Kind<'_>) -> bool) -> Result<(), Error> {
        if matches!(self.scanner.peek()?.kind, Kind::Value) {
            self.scanner.take();
            if !ends(&self.scanner.peek()?.kind) {
                return self.node(Context::Flow);
            }
        }
        let line = self.scanner.peek()?.line;
        self.empty_scalar(line);
        Ok(())
    }
}
