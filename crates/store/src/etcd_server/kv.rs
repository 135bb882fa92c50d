//! `KV`: reading, writing, transactions, compaction.

use super::ServerState;
use crate::wire::{
    decode_delete, decode_put, decode_range_request, decode_txn, encode_delete_answer,
    encode_put_answer, encode_range_answer, encode_txn_answer, rpc,
};
use crate::{Op, OpAnswer, Revision, Store, StoreError, Txn};
use async_trait::async_trait;
use tonic::{Request, Response, Status};

#[async_trait]
impl rpc::kv_server::Kv for ServerState {
    async fn range(
        &self,
        request: Request<rpc::RangeRequest>,
    ) -> Result<Response<rpc::RangeResponse>, Status> {
        let request = request.into_inner();
        let answer = self.store.range(decode_range_request(&request)?).await?;
        let header = self.header(answer.revision);
        Ok(Response::new(encode_range_answer(&request, answer, header)))
    }

    async fn put(
        &self,
        request: Request<rpc::PutRequest>,
    ) -> Result<Response<rpc::PutResponse>, Status> {
        let (answer, revision) = self.write(Op::Put(decode_put(request.get_ref())?)).await?;
        Ok(Response::new(encode_put_answer(
            answer,
            self.header(revision),
        )))
    }

    async fn delete_range(
        &self,
        request: Request<rpc::DeleteRangeRequest>,
    ) -> Result<Response<rpc::DeleteRangeResponse>, Status> {
        let (answer, revision) = self
            .write(Op::Delete(decode_delete(request.get_ref())?))
            .await?;
        Ok(Response::new(encode_delete_answer(
            answer,
            self.header(revision),
        )))
    }

    async fn txn(
        &self,
        request: Request<rpc::TxnRequest>,
    ) -> Result<Response<rpc::TxnResponse>, Status> {
        let request = request.into_inner();
        let answer = self.store.txn(decode_txn(&request)?).await?;
        let header = self.header(answer.revision);
        Ok(Response::new(encode_txn_answer(&request, answer, header)))
    }

    async fn compact(
        &self,
        request: Request<rpc::CompactionRequest>,
    ) -> Result<Response<rpc::CompactionResponse>, Status> {
        let revision = Revision::from_wire(request.get_ref().revision).unwrap_or_default();
        self.store.compact(revision).await?;
        Ok(Response::new(rpc::CompactionResponse {
            header: Some(self.header_now()),
        }))
    }
}

impl ServerState {
    /// Runs one operation and returns the revision after it.
    async fn write(&self, op: Op) -> Result<(OpAnswer, Revision), StoreError> {
        let mut answer = self
            .store
            .txn(Txn {
                then: vec![op],
                ..Txn::default()
            })
            .await?;

        let of_op = answer
            .answers
            .pop()
            .expect("a transaction returns one answer per operation");

        Ok((of_op, answer.revision))
    }
}
