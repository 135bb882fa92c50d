//! Block collections.

use super::super::Error;
use super::super::token::Kind;
use super::{Composer, Context, Expects};

impl Composer<'_> {
    pub(super) fn block_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.next()?;
        match token.kind {
            Kind::BlockEntry => match self.scanner.peek()?.kind {
                Kind::BlockEntry | Kind::BlockEnd => {
                    self.empty_scalar(token.line);
                    Ok(())
                }
                _ => self.node(Context::Block),
            },
            Kind::BlockEnd => {
                self.close();
                Ok(())
            }
            _ => Err(self.error("did not find expected '-' indicator", token.line)),
        }
    }

    pub(super) fn indentless_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;

        if !matches!(token.kind, Kind::BlockEntry) {
            self.close();
            return Ok(());
        }

        self.scanner.take();

        match self.scanner.peek()?.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty_scalar(line);
                Ok(())
            }
            _ => self.node(Context::Block),
        }
    }

    pub(super) fn block_key(&mut self) -> Result<(), Error> {
        let token = self.scanner.next()?;
        match token.kind {
            Kind::Key => {
                self.expect(Expects::BlockValue);
                self.block_member(token.line)
            }
            Kind::BlockEnd => {
                self.close();
                Ok(())
            }
            _ => Err(self.error("did not find expected key", token.line)),
        }
    }

    pub(super) fn block_value(&mut self) -> Result<(), Error> {
        self.expect(Expects::BlockKey);
        let token = self.scanner.peek()?;
        let line = token.line;
        if !matches!(token.kind, Kind::Value) {
            self.empty_scalar(line);
            return Ok(());
        }
        self.scanner.take();
        self.block_member(line)
    }

    fn block_member(&mut self, line: usize) -> Result<(), Error> {
        match self.scanner.peek()?.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty_scalar(line);
                Ok(())
            }
            _ => self.node(Context::BlockOrIndentless),
        }
    }
}
