//! `Cluster`: a cluster of one member; members cannot be added or removed.

use super::ServerState;
use crate::wire::rpc;
use async_trait::async_trait;
use tonic::{Request, Response, Status};

#[async_trait]
impl rpc::cluster_server::Cluster for ServerState {
    async fn member_list(
        &self,
        _request: Request<rpc::MemberListRequest>,
    ) -> Result<Response<rpc::MemberListResponse>, Status> {
        let member = rpc::Member {
            id: self.member_id(),
            name: self.name.clone(),
            peer_ur_ls: self.peer_urls.clone(),
            client_ur_ls: self.client_urls.clone(),
            is_learner: false,
        };
        Ok(Response::new(rpc::MemberListResponse {
            header: Some(self.header_now()),
            members: vec![member],
        }))
    }

    async fn member_add(
        &self,
        _request: Request<rpc::MemberAddRequest>,
    ) -> Result<Response<rpc::MemberAddResponse>, Status> {
        Err(one_member())
    }

    async fn member_remove(
        &self,
        _request: Request<rpc::MemberRemoveRequest>,
    ) -> Result<Response<rpc::MemberRemoveResponse>, Status> {
        Err(one_member())
    }

    async fn member_update(
        &self,
        _request: Request<rpc::MemberUpdateRequest>,
    ) -> Result<Response<rpc::MemberUpdateResponse>, Status> {
        Err(one_member())
    }

    async fn member_promote(
        &self,
        _request: Request<rpc::MemberPromoteRequest>,
    ) -> Result<Response<rpc::MemberPromoteResponse>, Status> {
        Err(one_member())
    }
}

pub(super) fn one_member() -> Status {
    Status::unimplemented("the embedded store always has exactly one member")
}
